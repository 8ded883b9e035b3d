// SPDX-License-Identifier: Apache-2.0
// The loop of one device: watches its launches, finds their period, has it planned, and lets the
// movers execute the plan. Any thread; one lock (the traffic's), never held across a driver call
// that may block. A launch waits for the lock only where something is to happen before it or behind
// it. Otherwise, when the lock is taken, it leaves itself in an inbox, or passes in the plan that
// runs (plan_place.h).
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "policy/period.h"
#include "shim/debts.h"
#include "shim/demand.h"
#include "shim/executor.h"
#include "shim/hints.h"
#include "shim/launch_inbox.h"
#include "shim/loop.h"
#include "shim/loop_memory.h"
#include "shim/loop_record.h"
#include "shim/mover.h"
#include "shim/period_timer.h"
#include "shim/phase_states.h"
#include "shim/plain_clock.h"
#include "shim/plan_job.h"
#include "shim/plan_place.h"
#include "shim/program_streams.h"
#include "shim/recorder.h"
#include "shim/residency.h"
#include "shim/shadow.h"

namespace atp::shim {

class DeviceLoop : private Traffic::Observer {
 public:
  DeviceLoop(int device, CUcontext context);

  void OnAlloc(Allocation* allocation);
  void OnReuse(Allocation* allocation, uint64_t bytes);
  void OnFree(Allocation* allocation);
  void BeforeLaunch(const LaunchView& launch);
  void AfterLaunch(const LaunchView& launch);
  void CompareAccess(const LaunchView& launch);  // ATP_ACCESS_STATS; after AfterLaunch
  void BeforeWait(Wait kind, CUstream stream, bool per_thread, CUevent event);
  bool WaitForProgram();
  void OnStreamDestroy(CUstream stream);
  void Stop();
  // The launch of this thread that BeforeLaunch has just seen was the plan's next, and needs
  // nothing any more that has been dropped; or else the driver's error.
  static bool Expected() { return launched_.expected; }
  static CUresult Refused() { return launched_.refused; }
  CUresult PayAll(const LaunchView* launch);
  bool planned() const { return planned_.load(std::memory_order_relaxed); }  // any thread

 private:
  using Lock = std::unique_lock<std::mutex>;
  enum class Mode : uint8_t {
    kFits,   // everything fits the budget: nothing is watched
    kWatch,  // launches are recorded; a plan runs when `schedule_` is set
    kOff,    // hints do not help or do not work here; the program runs on plain managed memory
  };

  void OnMoved(const Action& action, bool to_device) override;
  bool IsDuplicated(const Action& action) override;
  bool BeginDrop(const Action& action, uint64_t period) override;
  void Dropped(const Action& action) override;
  void EndReadMostly(Allocation* allocation, Lock& lock);
  void FollowShare();
  bool Enter(const LaunchView& launch, Lock& lock);
  bool TakeInbox(Lock& lock);
  void EmptyInbox(Lock& lock);
  void LearnLate(const LaunchView& launch, Lock& lock);
  void Keep(const LaunchView& launch, Lock& lock);
  bool StartWatching();
  void StartExecutor();
  bool Pass(const LaunchView& launch);
  bool Step(uint64_t signature);
  void Settle(uint32_t newest);
  void ClosePlace() { Settle(place_.Close(position_)); }
  void OpenPlace(uint64_t generation, uint32_t position);
  void Follow(uint64_t signature, bool stepped, Lock& lock);
  void Shift(uint64_t signature);
  void AtPlannedPeriod(Lock& lock);
  void AtPeriodStart(const policy::PeriodState& state, Lock& lock);
  void Adopt(PhaseState* phase, uint64_t plain_periods, Lock& lock);
  void LogPlan(const Schedule& schedule) const;
  void LogSummary() const;
  struct Wanted {  // what another plan has to be to take the place of the one that runs
    std::shared_ptr<const Schedule> grown_from;  // for other ranges than this one
    double below_seconds = 0;                    // promise less; 0 = whatever it promises
  };
  void RequestPlan(PhaseState* phase, uint64_t periods, Lock& lock) {
    RequestPlan(phase, periods, lock, Wanted());
  }
  void RequestPlan(PhaseState* phase, uint64_t periods, Lock& lock, Wanted wanted);
  void Plan(PhaseState* phase, Recorder::Period period, Wanted wanted);
  bool LinkIsAnother();
  void KeepLastOfBefore();
  void JudgeLastOfBefore();
  void PlanRemembered(Lock& lock);
  void PlanKnownShape(uint64_t signature, Lock& lock);
  void TellMemory(bool at_once);
  void TryTuning(double seconds, Lock& lock);
  void TakePlan(PhaseState* now, uint64_t plain_periods, Lock& lock);
  void Break();
  void ReadPlainPeriods();
  double LastPeriodSeconds();
  double Judge(Lock& lock);
  bool AwaitInPlan(const std::function<bool()>& done, Lock& lock);
  void Decide(const LaunchView& launch, Traffic::FetchEvents* arriving, Lock& lock);
  void HoldForFetches(uint64_t period, uint32_t position, Traffic::FetchEvents* arriving,
                      Lock& lock);
  void AwaitOnStream(const LaunchView& launch, Traffic::FetchEvents* arriving);
  void MarkLastUse(Lock& lock);
  void ServeOnDemand(const LaunchView& launch, Traffic::FetchEvents* arriving, Lock& lock);
  bool Quiet() const {
    return traffic_.Quiet() && demand_.Quiet() && !debts_.paying() &&
           (shadow_ == nullptr || !shadow_->submitting());
  }
  bool MayDrop() const;
  bool WantsDrops() const;
  bool IsOnlyStream(const LaunchView& launch) const;
  void FollowDrops(const LaunchView& launch, uint64_t period, uint32_t position,
                   Traffic::FetchEvents* arriving, Lock& lock);
  CUresult Pay(uint32_t before, Lock& lock);
  CUresult PayEarly(Lock& lock);
  void TellDrops() const;
  void StartShadow();
  bool WantsShadow(const LaunchView& launch, uint32_t position) {
    return shadow_ != nullptr && ShadowTakes(launch, position);
  }
  bool ShadowTakes(const LaunchView& launch, uint32_t position);
  bool RunShadow(const LaunchView& launch, Lock& lock);
  void FollowShadow();
  void TellShadow(const Shadow::Result& result);
  void EndShadow();
  void AwaitQuiet(Lock& lock);
  void GiveUp(PhaseState* phase, const char* why);
  bool PlainKeepsToBudget() const;
  void LetGo(const char* what, Lock& lock);
  void TurnOff(const char* why, Lock& lock);
  uint64_t Capacity() const;

  const int device_;
  const CUcontext context_;
  uint64_t budget_;
  std::atomic<uint32_t> share_seen_{0};  // ShareVersion that `budget_` is of
  std::atomic<Mode> mode_{Mode::kFits};
  bool warned_ = false;
  bool turns_ = false;                // the program's thread plays the movers (lane executor)
  std::atomic<bool> planned_{false};  // `schedule_` is set; for those who do not have the lock
  LaunchInbox inbox_;

  DriverHints hints_;
  Traffic traffic_;
  std::unique_ptr<Executor> executor_;
  Residency residency_;
  bool believed_ = false;  // something in it: no launch has run without a plan since
  uint64_t managed_bytes_ = 0;

  policy::PeriodDetector detector_;
  Recorder recorder_;
  PeriodTimer timer_;
  PlanJob job_;
  uint64_t frees_ = 0;  // plans made before a free are not adopted
  PhaseStates phases_;
  LoopMemory memory_;
  std::shared_ptr<const Schedule> before_trial_;  // the plan that a trial is held against
  bool recalling_ = false;                        // `job_` is, or was last, for a phase from there
  LastLaunches last_{};                           // signatures
  PhaseState* phase_ = nullptr;                   // the one that `schedule_` is for
  std::shared_ptr<const Schedule> schedule_;
  uint32_t position_ = 0;  // of the last launch, in the schedule; but for those that passed
  PlanPlace place_;        // while open, the plan is `schedule_`
  uint64_t period_ = 0;    // since the schedule was adopted
  ProgramStreams streams_;

  struct Launched {       // between BeforeLaunch and AfterLaunch of a thread
    uint64_t demand = 0;  // its number there; 0 = a plan's launch, or nobody's
    uint64_t generation = 0;
    uint32_t position = 0;
    uint64_t flag_sequence = 0;
    bool flagged = false;
    bool expected = false;
    CUresult refused = CUDA_SUCCESS;
  };
  // Initial-exec: as what the re-entry guard has (reentry.h).
  static thread_local constinit Launched launched_ __attribute__((tls_model("initial-exec")));
  uint64_t generation_ = 0;
  // Counts what the program does. Who has waited, and so given up the lock, looks whether it is
  // still what it was: otherwise a launch has lost its place, and phases may be gone.
  uint64_t happened_ = 0;

  struct Statistics {
    uint64_t periods = 0, planned_periods = 0, breaks = 0, plans = 0, let_go = 0;
    double planning_seconds = 0;              // of the processor
    double last_seconds = 0, last_bound = 0;  // of the last planned period that was measured
    // What was dropped and made again; how often not where the plan has it.
    uint64_t reran = 0, dropped_bytes = 0, paid_early = 0;
    double reran_seconds = 0;  // as their launches take
  } statistics_;
  std::array<CUevent, 2> boundary_{};  // starts of the last two planned periods, in turns
  uint64_t boundaries_ = 0;            // recorded since the schedule was adopted
  // The last period of the plan that ran before this one. The next plan is made by what is measured
  // in it, so it is over before its time is known.
  struct {
    std::shared_ptr<const Schedule> schedule;  // null: no such period
    CUevent begin = nullptr, end = nullptr;
    uint64_t frees = 0;  // the loop's count then
  } before_;
  PlainClock plain_;
  Demand demand_;
  LoopRecord record_;
  Shadow* shadow_ = nullptr;   // ATP_RECOMPUTE=shadow; lives as long as the process
  uint64_t shadow_bytes_ = 0;  // of device memory that it takes
  std::shared_ptr<const Repeatable> shadow_of_;  // the plan that ran last
  bool shadow_told_ = false;
  // Something ran again in the period that ends at a boundary: what it took says nothing then.
  std::array<bool, 2> shadowed_{};

  Debts debts_;
  bool drops_off_ = false;
  struct {
    CUstream handle = nullptr;
    bool per_thread = false;
  } drop_stream_;              // what is dropped is made, and made again, there
  CUevent settled_ = nullptr;  // behind what was paid early,
  bool settling_ = false;      // and other streams may have to wait for it still
};

// A launch that no loop sees, for ATP_RECOMPUTE=1.
void NoteBlindLaunch(CUstream stream, bool per_thread);

}  // namespace atp::shim
