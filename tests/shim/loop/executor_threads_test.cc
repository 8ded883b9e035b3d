// SPDX-License-Identifier: Apache-2.0
// The same movers on real threads, in every order that the machine and a random yield produce: what
// must hold does not depend on timing.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "shim/mover.h"

namespace atp::shim {
namespace {

constexpr uint32_t kTensors = 12, kFits = 8, kKept = kFits - 2;

// Moves at once, but gives other threads a turn in the middle of calls.
class YieldingPort : public HintPort {
 public:
  CUresult Evict(unsigned, uint64_t address, uint64_t) override {
    Yield();
    std::lock_guard lock(mutex_);
    resident_.erase(address);
    return CUDA_SUCCESS;
  }
  CUresult Drop(unsigned mover, uint64_t address, uint64_t bytes, bool) override {
    return Evict(mover, address, bytes);
  }
  CUresult Fetch(unsigned, uint64_t address, uint64_t, CUevent) override {
    Yield();
    std::lock_guard lock(mutex_);
    resident_.insert(address);
    most_resident_ = std::max(most_resident_, resident_.size());
    return CUDA_SUCCESS;
  }
  CUevent NewEvent() override { return reinterpret_cast<CUevent>(++last_event_); }
  uint64_t NowNs() override { return 0; }
  uint64_t DoneAtNs(CUevent) override { return 0; }
  CUresult Record(CUevent, CUstream, bool) override { return CUDA_SUCCESS; }
  bool Done(CUevent) override { return true; }
  double Elapsed(CUevent, CUevent) override { return 0; }

  bool IsResident(uint64_t address) {
    std::lock_guard lock(mutex_);
    return resident_.count(address) != 0;
  }
  void Put(uint64_t address) { resident_.insert(address); }
  size_t most_resident() { return most_resident_; }

  static void Yield() {
    thread_local std::minstd_rand random(
        static_cast<unsigned>(std::hash<std::thread::id>{}(std::this_thread::get_id())));
    for (unsigned n = random() % 8; n > 0; --n) std::this_thread::yield();
  }

 private:
  std::mutex mutex_;
  std::set<uint64_t> resident_;
  size_t most_resident_ = 0;
  std::atomic<uintptr_t> last_event_{0};
};

// A program that touches one granule a launch, in a circle; the first kKept stay, the others take
// turns.
struct Program {
  Program() {
    policy::Plan plan;
    plan.feasible = true;
    plan.period_seconds = 1e-3;
    std::vector<Placed> placed;
    for (uint32_t i = 0; i < kTensors; ++i) {
      Allocation& a = allocations[i];
      a.id = i + 1;
      a.address = (i + 1) * kGranule;
      a.bytes = a.mapped_bytes = kGranule;
      placed.push_back({&a, 0, kGranule, i});
      if (i < kKept) {
        port.Put(a.address);
        continue;
      }
      policy::Move move;
      move.tensor = i;
      move.bytes = kGranule;
      move.after = move.before = i;
      move.start = i;
      plan.evictions.push_back(move);
      move.kind = policy::Move::Kind::kFetch;
      plan.fetches.push_back(move);
    }
    schedule = std::make_shared<Schedule>(BuildSchedule(plan, placed, kTensors, kPieceBytes));
  }
  Allocation allocations[kTensors];
  YieldingPort port;
  std::shared_ptr<const Schedule> schedule;
};

TEST(ThreadExecutor, EveryLaunchFindsItsGranuleAndRoomIsNeverExceeded) {
  // Detached threads may look at these after the test: static, so that they stay reachable.
  static auto* program = new Program;
  static auto* traffic = new Traffic(&program->port, kFits * kGranule);
  ThreadCalls calls;
  calls.enter = [] {};
  calls.event_synchronize = [](CUevent) { YieldingPort::Yield(); };
  static auto* executor = MakeThreadExecutor(&traffic->mutex(), calls, traffic->movers()).release();

  std::unique_lock lock(traffic->mutex());
  traffic->Activate(program->schedule, {}, {}, kKept * kGranule);
  executor->Changed();
  unsigned missing = 0, stuck = 0;
  for (uint64_t period = 0; period < 200; ++period) {
    for (uint32_t position = 0; position < kTensors; ++position) {
      const uint64_t needed = traffic->Need(period, position);
      executor->Changed();
      const auto issued = [&] { return traffic->FetchesIssued(needed); };
      if (!issued() && !executor->Await(lock, issued)) ++stuck;
      if (!program->port.IsResident(program->allocations[position].address)) ++missing;
      if (program->schedule->flag_index[position] == Schedule::kNotFlagged) continue;
      const uint64_t flag =
          period * program->schedule->flagged + program->schedule->flag_index[position];
      const auto free = [&] { return traffic->MarkFree(flag); };
      if (!free() && !executor->Await(lock, free)) ++stuck;
      LaunchMark& mark = traffic->MarkSlot(flag);
      if (mark.events[0] == nullptr) mark.events[0] = program->port.NewEvent();
      mark.count = 1;
      traffic->MarkRecorded(flag);
      executor->Changed();
    }
  }
  traffic->Deactivate();
  executor->Stop();
  EXPECT_EQ(missing, 0u);
  EXPECT_EQ(stuck, 0u);
  EXPECT_LE(program->port.most_resident(), kFits);
  EXPECT_GT(program->port.most_resident(), kKept);
}

}  // namespace
}  // namespace atp::shim
