// SPDX-License-Identifier: Apache-2.0
// Each mover on a thread of its own: the executor for real drivers.
#include <chrono>
#include <condition_variable>

#include "shim/executor.h"
#include "shim/own_thread.h"

namespace atp::shim {
namespace {

// A planned stall is bounded by the transfer of what one launch needs; far beyond it something is
// wrong and the program goes on.
constexpr auto kLetGo = std::chrono::seconds(5);

class ThreadExecutor : public Executor {
 public:
  ThreadExecutor(std::mutex* mutex, ThreadCalls calls, std::vector<Mover*> movers)
      : mutex_(mutex), calls_(std::move(calls)) {
    for (Mover* mover : movers) StartOwnThread(mover->name(), [this, mover] { Run(mover); });
  }

  void Changed() override { changed_.notify_all(); }
  void CatchUp(std::unique_lock<std::mutex>&) override {}
  void AwaitEvents(std::unique_lock<std::mutex>&, std::span<const CUevent>) override {}
  bool Await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) override {
    return changed_.wait_for(lock, kLetGo, [&] { return stopped_ || done(); }) && !stopped_;
  }
  void Stop() override {
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  void Run(Mover* mover) {
    calls_.enter();
    std::unique_lock lock(*mutex_);
    while (!stopped_) {
      const Poll poll = mover->Look();
      switch (poll.kind) {
        case Poll::Kind::kIdle:
          changed_.wait(lock);
          break;
        case Poll::Kind::kEvent:
          lock.unlock();
          calls_.event_synchronize(poll.event);
          lock.lock();
          mover->OnEvent(poll.event);
          changed_.notify_all();
          break;
        case Poll::Kind::kReady:
          mover->Act(lock);
          mover->Finish();
          changed_.notify_all();
          break;
      }
    }
  }

  std::mutex* mutex_;
  ThreadCalls calls_;
  std::condition_variable changed_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Executor> MakeThreadExecutor(std::mutex* mutex, ThreadCalls calls,
                                             std::vector<Mover*> movers) {
  return std::make_unique<ThreadExecutor>(mutex, std::move(calls), std::move(movers));
}

}  // namespace atp::shim
