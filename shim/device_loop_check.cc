// SPDX-License-Identifier: Apache-2.0
// The loop's last step: what planned periods take is held against the best plan so far and against
// plain managed memory, and what does not pay or does not work is given up.
#include "shim/device_loop.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

// So many planned periods in a row slower than plain managed memory, and the plan is given up.
constexpr unsigned kSlowerLimit = 3;
// A later plan that is slower than the best one by this much gives way to it.
constexpr double kWorse = 0.01;
constexpr uint64_t kLetGoLimit = 8;

}  // namespace

void DeviceLoop::ReadPlainPeriods() {
  PlainClock::Seconds seconds;
  const uint32_t count = plain_.Collect(&seconds);
  if (count == 0) return;
  phase_->plain_seconds = seconds[0];
  record_.PlainTook(seconds, count);
}

// What the period before the last one took, 0 when that is not known yet.
double DeviceLoop::LastPeriodSeconds() {
  if (boundaries_ < 2) return 0;
  const CUevent begin = boundary_[boundaries_ % 2], end = boundary_[(boundaries_ + 1) % 2];
  if (shadowed_[(boundaries_ + 1) % 2]) return 0;
  return hints_.Done(end) ? hints_.Elapsed(begin, end) : 0;
}

void DeviceLoop::KeepLastOfBefore() {
  before_.schedule.reset();
  if (boundaries_ < 2 || schedule_->trial) return;
  before_.schedule = schedule_;
  before_.frees = frees_;
  std::swap(before_.begin, boundary_[boundaries_ % 2]);
  std::swap(before_.end, boundary_[(boundaries_ + 1) % 2]);
}

void DeviceLoop::JudgeLastOfBefore() {
  if (before_.schedule == nullptr || !hints_.Done(before_.end)) return;
  const double took = before_.frees == frees_ ? hints_.Elapsed(before_.begin, before_.end) : 0;
  PhaseState& p = *phase_;
  if (took > 0 && (p.best == nullptr || took < p.best_seconds)) {
    p.best = before_.schedule;
    p.best_seconds = took;
  }
  before_.schedule.reset();
}

// Compares what a planned period took with the best plan so far and with plain managed memory: a
// plan that does not pay is given up. Returns what it took, 0 when that is not known.
double DeviceLoop::Judge(Lock& lock) {
  if (streams_.empty()) return 0;
  ReadPlainPeriods();
  JudgeLastOfBefore();
  bool worse = false;
  const double took = LastPeriodSeconds();
  if (took > 0) {
    statistics_.last_seconds = took;
    statistics_.last_bound = schedule_->bound_seconds;
    record_.Took(took);
    PhaseState& p = *phase_;
    const bool slower = PlainKeepsToBudget() && p.plain_seconds > 0 && took > p.plain_seconds;
    p.slower = slower ? p.slower + 1 : 0;
    worse = p.best != nullptr && schedule_ != p.best && took > p.best_seconds * (1 + kWorse);
    if (p.best == nullptr || took < p.best_seconds) {
      p.best = schedule_;
      p.best_seconds = took;
    }
  }
  CUevent& now = boundary_[boundaries_++ % 2];
  if (now == nullptr) now = hints_.NewEvent(CU_EVENT_DEFAULT);
  streams_.RecordOnFirst(now);
  shadowed_[boundaries_ % 2] = false;
  if (phase_->slower >= kSlowerLimit) {
    GiveUp(phase_, "planned periods take longer than plain managed memory");
  } else if (worse) {
    if (schedule_->trial) {
      memory_.tuning().GivenUp(took);
    } else if (schedule_->by_parts && !phase_->best->by_parts) {
      phase_->whole = true;
      phase_->seconds.clear();  // faults were among them
    } else {
      phase_->settled = true;
    }
    phase_->schedule = phase_->best;
    record_.Note(false, "a later plan was slower than an earlier one, which runs again");
    Adopt(phase_, 0, lock);
  } else if (took > 0) {
    TryTuning(took, lock);
  }
  return took;
}

void DeviceLoop::LetGo(const char* what, Lock& lock) {
  if (++statistics_.let_go == 1)
    ATP_LOG_WARN("device %d: %s; the launch goes on without it", device_, what);
  record_.Note(false, "%s; a launch went on without it", what);
  if (statistics_.let_go >= kLetGoLimit) TurnOff(what, lock);
}

void DeviceLoop::TurnOff(const char* why, Lock& lock) {
  ClosePlace();
  traffic_.Deactivate();
  demand_.Stop();
  schedule_.reset();
  planned_ = false;
  phase_ = nullptr;
  AwaitQuiet(lock);
  // Nobody watches for writes from now on.
  for (const auto& [id, allocation] : residency_.live()) {
    if (allocation->read_mostly) EndReadMostly(allocation, lock);
  }
  mode_ = Mode::kOff;
  ATP_LOG_WARN("device %d: no hints from now on: %s", device_, why);
  record_.Note(true, "no hints any more: %s", why);
}

void DeviceLoop::Stop() {
  Lock lock(traffic_.mutex());
  if (mode_ == Mode::kFits) return;
  ClosePlace();
  debts_.KeepAll();
  traffic_.Deactivate();
  if (debts_.any()) Pay(UINT32_MAX, lock);
  demand_.Stop();
  mode_ = Mode::kOff;
  if (executor_ != nullptr) executor_->Stop();
  EndShadow();
  TellDrops();
  TellMemory(/*at_once=*/true);
  LogSummary();
}

}  // namespace atp::shim
