// SPDX-License-Identifier: Apache-2.0
// Replays a Plan as a runtime would execute it: one mover in each direction, moves issued in the
// order of the plan, each checked first (its last user has finished, there is room, the data is
// where the plan believes). What the plan does not bring in comes by faults; what has no room makes
// room by evicting what is needed last. One thread; no I/O.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "policy/planner.h"
#include "policy/replay/executor.h"

namespace atp::policy {

class PlanExecutor : public Executor {
 public:
  // The plan may be made from another trace than the one executed (a wrong prediction), with the
  // same tensors and launches.
  PlanExecutor(const Trace& trace, const Uses& uses, const ReplayOptions& options,
               const Plan& plan);

 private:
  // A move of one period.
  struct Job {
    const Move* move = nullptr;
    Instance launch = 0;   // evict: the last user; fetch: the next user
    Instance until = 0;    // evict: the next user; no longer wanted once that one waits
    Instance trigger = 0;  // fetch: starts `offset` seconds after this launch started
    double offset = 0;
    Block next = 0, end = 0;  // blocks not handled yet
    bool Done() const { return next == end; }
  };

  void Prepare() override;
  void BeginPeriod(uint32_t period) override;
  void BeginWait() override;
  void Pump() override;
  bool Serve(bool stuck) override;
  double NextTimer() const override;
  void OnStart() override;
  bool FetchesComeFirst() const override { return true; }

  Job MakeJob(const Move& move) const;
  void PumpEvictions();
  void PumpFetches();
  // Starts the next block of the job that is to move. False: the job has to wait.
  bool StepEviction(Job* job);
  bool StepFetch(Job* job);
  Job* NeededFetch();
  // There is room for it and for all that is born before its planned start.
  bool MayStartEarly(const Job& job) const;
  void DropFinished();
  double TriggerTime(const Job& job) const;
  // Blocks that the waiting launch lacks and that no fetch will bring.
  std::vector<Block> Uncovered();
  // The launch waits for room, and nothing is leaving that would make it.
  bool LacksRoom() const;
  // Bytes of these fetches that are still on the host.
  int64_t BytesDue(const std::vector<Job*>& jobs) const;
  // The most bytes that one of the next launches will lack: what is here, comes for it and is born
  // in it, less what the plan sends away before it and what dies.
  Bytes LackingAhead() const;
  // Evicts what is needed last, and notes a fetch for it.
  bool Repair();
  void RefillHeadRoom();

  const Plan& plan_;
  std::vector<uint32_t> trigger_;   // per fetch of the plan: launch that runs when it starts
  std::vector<Bytes> born_before_;  // per position: born in launches before it, and their workspace
  std::deque<Job> evictions_, fetches_, repairs_;
  std::vector<Job> postponed_;  // evictions that were due while a launch used their tensor
  Bytes lacking_ = 0;           // ahead, and not yet made room for
  std::unordered_map<Instance, std::vector<Job*>> fetches_for_;  // by the launch that needs them
  std::vector<Instance>
      fetched_for_;              // per block: 1 + the launch for which a fetch found it resident
  std::vector<double> started_;  // per position: when it last started; and of which instance
  std::vector<Instance> started_instance_;
  bool looked_ = false;  // for blocks that the waiting launch lacks and no fetch brings
};

}  // namespace atp::policy
