// SPDX-License-Identifier: Apache-2.0
// The launch loop of the replay model: launches run one after another, each once what it touches is
// resident; data is born at its first use and dies after its last. What moves and when is left to
// the two executors, which derive from this class: plan_executor.h (a Plan) and rules_executor.h (a
// driver or an online policy). One thread; no I/O.
#pragma once

#include <vector>

#include "policy/replay/machine.h"
#include "policy/replay/result.h"

namespace atp::policy {

class Executor {
 public:
  Executor(const Trace& trace, const Uses& uses, const ReplayOptions& options);
  virtual ~Executor() = default;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  ReplayResult Run();

 protected:
  using State = Machine::State;
  using Block = Machine::Block;

  // Called once before the first launch, and at the start of each period.
  virtual void Prepare() {}
  virtual void BeginPeriod(uint32_t /*period*/) {}
  // `current()` is next: called when the launch before it has finished and nothing has been claimed
  // for it.
  virtual void BeginWait() {}
  // Starts whatever may start now, in both directions.
  virtual void Pump() = 0;
  // Makes progress for the waiting launch when Pump cannot: faults, or evictions that nobody
  // planned. `stuck`: no copy is on its way and no timer is set. False: nothing could be done, the
  // launch cannot run.
  virtual bool Serve(bool stuck) = 0;
  // The next moment at which Pump may do more though no copy has ended.
  virtual double NextTimer() const { return kForever; }
  virtual void OnStart() {}
  virtual void OnFinish() {}
  // While a launch waits for room, its own fetches take it before what is born in it: they take
  // time after they have room.
  virtual bool FetchesComeFirst() const { return false; }
  // Blocks that are not born yet and may be placed without a fault.
  virtual bool BirthsNeedNoFault() const { return true; }

  static constexpr double kForever = 1e300;

  Instance current() const { return current_; }  // the launch that waits or runs
  bool waiting() const { return waiting_; }
  uint32_t Position() const { return static_cast<uint32_t>(current_ % uses_.launches); }
  bool TouchedNow(uint32_t tensor) const { return stamp_[tensor] == current_ + 1; }
  // Room that the waiting launch still needs for what is born in it and for its workspace.
  Bytes RoomWanted() const { return room_wanted_; }
  // What the waiting launch still has to be brought.
  Bytes BytesToFetch() const;
  bool LeavesFree(uint32_t tensor) const {
    return options_.clean_leaves_free && !uses_.written[tensor];
  }
  void Evict(Block block, double setup);
  // Brings the blocks in by fault batches, with a victim for each that finds no room. False: no
  // victim left.
  bool ServeFaults(const std::vector<Block>& missing, uint32_t faults_per_block);
  // Whom the driver evicts in a fault; kNoBlock = nobody.
  virtual Block FaultVictim();
  bool faulting() const { return faulting_; }
  // Evicts victims, one after another, until so many bytes are free. False: no victim left.
  bool MakeRoom(Bytes bytes);
  // Lets `seconds` pass; copies go on and movers may act.
  void Wait(double seconds);

  const Trace& trace_;
  const Uses& uses_;
  const ReplayOptions& options_;
  Machine machine_;
  ReplayResult result_;

 private:
  void RunPeriod(uint32_t period);
  bool WaitForLaunch();
  bool ReadyToStart();
  void WantBirths();
  void PlaceBirths();
  bool MissingNow() const;
  // Seconds that the launch takes beyond its own, for access to mapped host memory.
  double RemoteSeconds();
  void RunLaunch();
  void FinishLaunch();
  bool EvictOne(Block victim);
  void ChargeFaults(Block block, uint32_t faults);
  void AwaitIdle(CopyDirection direction);

  Instance current_ = 0;
  bool waiting_ = false, faulting_ = false;
  Bytes room_wanted_ = 0;
  double wait_began_ = 0;
  uint32_t batch_room_ = 0;      // faults that the batch being served still takes
  std::vector<Instance> stamp_;  // per tensor: 1 + the last launch that touched it
};

}  // namespace atp::policy
