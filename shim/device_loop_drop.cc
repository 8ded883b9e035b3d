// SPDX-License-Identifier: Apache-2.0
// ATP_RECOMPUTE=1: what the plan drops is made again before anybody needs it (docs/recompute.md).
#include <string.h>

#include "shim/capture.h"
#include "shim/device_loop.h"
#include "shim/functions.h"
#include "shim/own_calls.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

constexpr unsigned kTries = 3;

// Launches that touch nothing of any loop may be anything, and may run for long: they are known to
// stand behind what is launched before them on one stream only.
constinit std::atomic<uint64_t> blind_stream{0};
constexpr uint64_t kSeveral = UINT64_MAX;
uint64_t KeyOf(CUstream stream, bool per_thread) {
  return (reinterpret_cast<uint64_t>(stream) << 1 | (per_thread ? 1 : 0)) + 1;
}

// A default stream of each thread is several.
bool IsOne(CUstream stream, bool per_thread) {
  return stream == nullptr ? !per_thread : stream != CU_STREAM_PER_THREAD;
}

CUresult RunAgain(const Again& again, CUstream stream, bool per_thread) {
  const Relaxed relaxed;
  const auto submit = per_thread ? real().cuLaunchKernel_ptsz : real().cuLaunchKernel;
  if (submit == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  std::vector<char> arguments = again.arguments;
  std::vector<void*> parameters;
  for (const Parameter& p : again.info->parameters) parameters.push_back(&arguments[p.offset]);
  auto* function = static_cast<CUfunction>(const_cast<void*>(again.info->handle));
  const uint32_t *grid = again.shape.grid, *block = again.shape.block;
  return submit(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                again.shape.shared_bytes, stream, parameters.data(), nullptr);
}

}  // namespace

void NoteBlindLaunch(CUstream stream, bool per_thread) {
  uint64_t seen = 0;
  const uint64_t key = KeyOf(stream, per_thread);
  if (blind_stream.compare_exchange_strong(seen, key) || seen == key) return;
  blind_stream = kSeveral;
}

bool DeviceLoop::MayDrop() const {
  return Settings().recompute == Recompute::kOn && !drops_off_ && DriverHints::DiscardWorks();
}

// All that the program launches is on this stream, so that what stands behind a launch there stands
// behind all there is.
bool DeviceLoop::IsOnlyStream(const LaunchView& launch) const {
  const uint64_t blind = blind_stream.load();
  return IsOne(launch.stream, launch.per_thread) &&
         streams_.IsOnly(launch.stream, launch.per_thread) &&
         (blind == 0 || blind == KeyOf(launch.stream, launch.per_thread));
}

// At a position that the plan checks: what the launch needs is made again, and what it makes may go
// from now on. Otherwise the launch is another one than the plan was made for, and not expected.
void DeviceLoop::FollowDrops(const LaunchView& launch, uint64_t period, uint32_t position,
                             Traffic::FetchEvents* arriving, Lock& lock) {
  const std::shared_ptr<const Schedule> schedule = schedule_;
  if (schedule->checked.empty() || !schedule->checked[position]) return;
  const Again* again = AgainAt(*schedule->repeatable, position);
  const bool same_stream = !Owing() || (launch.stream == drop_stream_.handle &&
                                        launch.per_thread == drop_stream_.per_thread);
  if (drops_off_ || again == nullptr || !same_stream || !IsOnlyStream(launch) || CaptureOpen() ||
      !IsLaunchOf(*again, launch)) {
    return;
  }
  for (uint32_t d = 0; d < schedule->drops.size(); ++d) {
    if (schedule->drops[d].before == position) debts_.Keep(d);
  }
  const uint64_t generation = generation_;
  // What is made again reads what has been fetched, and is made where there is room now.
  if (debts_.Due(position)) AwaitOnStream(launch, arriving);
  launched_.refused = Pay(position, lock);
  if (generation != generation_ || !traffic_.active()) return;
  for (uint32_t d = 0; d < schedule->drops.size(); ++d) {
    if (schedule->drops[d].producer != position) continue;
    drop_stream_ = {launch.stream, launch.per_thread};
    debts_.Made(d, period);
  }
  launched_.expected = true;
}

// Debts that are due at or before a position of the plan; UINT32_MAX: all there are.
CUresult DeviceLoop::Pay(uint32_t before, Lock& lock) {
  constexpr unsigned kWaits = 100;
  for (unsigned waited = 0, tries = 0; debts_.Due(before);) {
    if (debts_.Busy(before)) {
      const auto ready = [&] { return !debts_.Busy(before); };
      if (!executor_->Await(lock, ready) && ++waited > kWaits) return CUDA_ERROR_NOT_READY;
      continue;
    }
    const Debts::Debt debt = debts_.Take(before);
    const auto stream = drop_stream_;
    lock.unlock();
    CUresult result;
    {
      const WithContext current(context_);
      result = RunAgain(debt.again(), stream.handle, stream.per_thread);
    }
    lock.lock();
    debts_.Paid(result == CUDA_SUCCESS);
    executor_->Changed();
    if (result == CUDA_SUCCESS) {
      ++statistics_.reran;
      statistics_.dropped_bytes += debt.range().bytes;
      statistics_.reran_seconds += debt.schedule->trace->launches[debt.range().producer].seconds;
    } else if (++tries == kTries) {
      return result;
    }
  }
  return CUDA_SUCCESS;
}

// Something else than the plan's next launch comes: all is paid before it goes, and it stands
// behind that. `launch`: if that is what comes.
CUresult DeviceLoop::PayAll(const LaunchView* launch) {
  Lock lock(traffic_.mutex());
  debts_.KeepAll();
  if (debts_.any()) {
    const CUresult result = PayEarly(lock);
    if (result != CUDA_SUCCESS) return result;
  }
  if (!settling_) return CUDA_SUCCESS;
  if (hints_.Done(settled_)) {
    settling_ = false;
    g_owing.fetch_sub(1);
    return CUDA_SUCCESS;
  }
  if (launch == nullptr || launch->capturing) return CUDA_SUCCESS;
  return hints_.StreamWait(launch->stream, launch->per_thread, settled_);
}

CUresult DeviceLoop::PayEarly(Lock& lock) {
  constexpr uint64_t kMostEarly = 8;
  if (++statistics_.paid_early == kMostEarly) {
    drops_off_ = true;
    ATP_LOG_INFO("device %d: nothing is dropped any more: the program keeps to no plan", device_);
    record_.Note(false, "nothing is dropped any more: the program keeps to no plan");
  }
  CUresult result = Pay(UINT32_MAX, lock);
  if (result != CUDA_SUCCESS) return result;
  if (settled_ == nullptr) settled_ = hints_.NewEvent(CU_EVENT_DISABLE_TIMING);
  for (unsigned i = 0; i < kTries; ++i) {
    result = hints_.Record(settled_, drop_stream_.handle, drop_stream_.per_thread);
    if (result == CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS && !settling_) {
    settling_ = true;
    g_owing.fetch_add(1);
  }
  return result;
}

bool DeviceLoop::BeginDrop(const Action& action, uint64_t period) {
  return !drops_off_ && debts_.Begin(action.drop - 1, period);
}

void DeviceLoop::Dropped(const Action& action) {
  debts_.Dropped(action.drop - 1);
  executor_->Changed();
}

// The shadow has seen enough of the running plan's launches: is there a plan that drops something?
bool DeviceLoop::WantsDrops() const {
  return MayDrop() && shadow_told_ && !phase_->asked_for_drops && !phase_->seconds.empty() &&
         schedule_->drops.empty();
}

void DeviceLoop::TellDrops() const {
  if (statistics_.reran == 0) return;
  ATP_LOG_INFO(
      "device %d: %llu launches ran again for %.3f ms, so that %s did not move; %llu times before "
      "the plan's time",
      device_, static_cast<unsigned long long>(statistics_.reran), 1e3 * statistics_.reran_seconds,
      HumanBytes(statistics_.dropped_bytes).text(),
      static_cast<unsigned long long>(statistics_.paid_early));
}

}  // namespace atp::shim
