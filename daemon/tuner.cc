// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuner.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace atp::daemon {
namespace {

using Seconds = std::chrono::duration<double>;

Seconds ThreadTime() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return Seconds(static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9);
}

}  // namespace

Seconds RestAfter(Seconds work, double share) {
  return work * (1 / std::clamp(share, 0.01, 1.0) - 1);
}

Tuner::~Tuner() { Stop(); }

void Tuner::Start(protocol::Learned learned, SearchOptions options, const Limits& limits) {
  Stop();
  stop_ = false;
  found_.reset();
  thread_ = std::thread([this, limits, what = std::move(learned),
                         with = std::move(options)]() mutable {
    setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), limits.nice);  // of this thread alone
    worked_ = ThreadTime();
    with.go_on = [this, share = limits.share] { return Rest(share); };
    Found found = SearchTuning(what, with);
    std::lock_guard lock(mutex_);
    if (!stop_) found_ = std::move(found);
    changed_.notify_all();
  });
}

// After each evaluation. False: to end.
bool Tuner::Rest(double share) {
  const Seconds now = ThreadTime(), rest = RestAfter(now - worked_, share);
  worked_ = now;
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, rest, [this] { return stop_; });
}

std::optional<Found> Tuner::Take() {
  std::optional<Found> found;
  {
    std::lock_guard lock(mutex_);
    found = std::exchange(found_, std::nullopt);
  }
  if (found) thread_.join();
  return found;
}

void Tuner::Await() {
  std::unique_lock lock(mutex_);
  if (busy()) changed_.wait(lock, [this] { return found_.has_value(); });
}

void Tuner::Stop() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace atp::daemon
