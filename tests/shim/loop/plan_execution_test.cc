// SPDX-License-Identifier: Apache-2.0
// Plans of the policy library, executed by the movers in the small virtual world: what the planner
// promises, the movers must reach.
#include <gtest/gtest.h>

#include <numeric>

#include "fake_world.h"
#include "policy/bounds.h"
#include "shim/plan_job.h"
#include "shim/residency.h"

namespace atp::shim {
namespace {

struct Shape {
  uint32_t layers = 8;
  uint32_t granules = 3;  // of a layer's weights, and of each of its gradients and two moments
  uint32_t activation_granules = 2;
  uint64_t launch_ns = 300'000;
  double oversubscription = 1.5;
  bool inference = false;  // forward only, of weights that nothing writes
  double rate = 25.0;      // of the link, bytes per ns
  uint64_t call_ns = 0;    // processor time of a call
  uint64_t lent = 0;       // bytes beyond the capacity that movers may use while moves overlap
};

// A training step: forward, backward, optimizer, each tensor an allocation of its own. Or forward
// passes only.
class Training {
 public:
  explicit Training(const Shape& shape) : shape_(shape) {
    shape.inference ? AddPass() : AddStep();
    uint64_t footprint = 0;
    for (const Allocation& a : allocations_) footprint += a.mapped_bytes;
    capacity = static_cast<uint64_t>(static_cast<double>(footprint) / shape.oversubscription) /
               kGranule * kGranule;
  }

  void Run(uint32_t periods) {
    FakeWorld world(shape_.rate, capacity + shape_.lent);
    world.SetCallNs(shape_.call_ns);
    Traffic traffic(&world, capacity + shape_.lent);
    auto executor = MakeLaneExecutor(FakeWorld::Calls(), traffic.movers(), 1);
    Residency residency;
    for (Allocation& a : allocations_) residency.Add(&a);

    PlanInput input;
    input.period.seen = seen_;
    input.period.written_anyway.resize(allocations_.size());
    for (Allocation& a : allocations_) {
      input.period.allocations.push_back(&a);
      input.period.mapped.push_back(a.mapped_bytes);
    }
    input.link.h2d = input.link.d2h = shape_.rate * 1e9;
    input.read_mostly = true;
    input.durations_known = true;
    input.period.usable = true;
    input.capacity = capacity;
    input.piece_bytes = PieceBytes(capacity);
    const PlanOutput plan = MakeSchedule(input);
    ASSERT_NE(plan.schedule, nullptr) << plan.why;
    promise = plan.schedule->promise_seconds;
    bound = plan.schedule->bound_seconds;

    const Schedule& s = *plan.schedule;
    std::unique_lock lock(traffic.mutex());
    Residency::Approach approach = residency.ToStartOf(s, kGranule);
    ASSERT_LE(approach.resident, capacity);
    traffic.Activate(plan.schedule, approach.evict, approach.fetch, approach.resident);
    uint64_t settled = 0;
    for (uint64_t period = 0; period < periods; ++period) {
      if (period == periods / 2) settled = world.compute_free();
      for (uint32_t position = 0; position < s.length; ++position) {
        executor->CatchUp(lock);
        const uint64_t needed = traffic.Need(period, position);
        const auto issued = [&] { return traffic.FetchesIssued(needed); };
        ASSERT_TRUE(issued() || executor->Await(lock, issued)) << period << ":" << position;
        const Traffic::FetchEvents last = traffic.LastFetches(needed);
        for (unsigned i = 0; i < last.count; ++i) world.StreamWait(last.events[i]);
        world.Launch(shape_.launch_ns, granules_[position]);
        if (s.flag_index[position] == Schedule::kNotFlagged) continue;
        const uint64_t flag = period * s.flagged + s.flag_index[position];
        const auto free = [&] { return traffic.MarkFree(flag); };
        ASSERT_TRUE(free() || executor->Await(lock, free)) << period << ":" << position;
        LaunchMark& mark = traffic.MarkSlot(flag);
        if (mark.events[0] == nullptr) mark.events[0] = world.NewEvent();
        world.Record(mark.events[0], nullptr, false);
        mark.count = 1;
        traffic.MarkRecorded(flag);
      }
    }
    achieved = static_cast<double>(world.compute_free() - settled) * 1e-9 / (periods - periods / 2);
    faults = world.faults;
    const Traffic::Counters& moved = traffic.counters();
    granules_of_a_call = static_cast<double>(moved.fetch_bytes / kGranule) /
                         static_cast<double>(std::max<uint64_t>(moved.fetch_calls, 1));
    early_fetches = world.early_fetches;
    most_resident = world.most_resident;
  }

  uint64_t capacity = 0, faults = 0, early_fetches = 0, most_resident = 0;
  double achieved = 0, promise = 0, bound = 0, granules_of_a_call = 0;

 private:
  void AddStep() {
    for (uint32_t l = 0; l < shape_.layers; ++l) {
      for (int k = 0; k < 4; ++k) state_.push_back(NewTensor(shape_.granules));
      activations_.push_back(NewTensor(shape_.activation_granules));
    }
    for (uint32_t l = 0; l < shape_.layers; ++l) AddLaunch({W(l), A(l)});
    for (uint32_t l = shape_.layers; l-- > 0;) AddLaunch({W(l), W(l) + 1, A(l)});
    for (uint32_t l = 0; l < shape_.layers; ++l) AddLaunch({W(l), W(l) + 1, W(l) + 2, W(l) + 3});
  }
  void AddPass() {
    for (uint32_t l = 0; l < shape_.layers; ++l) AddLaunch({NewTensor(shape_.granules)});
  }
  uint32_t W(uint32_t layer) const { return state_[layer * 4]; }
  uint32_t A(uint32_t layer) const { return activations_[layer]; }
  uint32_t NewTensor(uint32_t granules) {
    Allocation a;
    a.id = allocations_.size() + 1;
    a.bytes = a.mapped_bytes = granules * kGranule;
    a.address = next_address_;
    next_address_ += a.bytes;
    allocations_.push_back(a);
    seen_.allocations.push_back(a.bytes);
    return static_cast<uint32_t>(allocations_.size() - 1);
  }
  void AddLaunch(const std::vector<uint32_t>& touched) {
    policy::SeenLaunch launch;
    launch.kernel = seen_.launches.size();
    launch.seconds = static_cast<double>(shape_.launch_ns) * 1e-9;
    launch.first_touch = static_cast<uint32_t>(seen_.touches.size());
    launch.touch_count = static_cast<uint32_t>(touched.size());
    seen_.launches.push_back(launch);
    std::vector<uint64_t> granules;
    for (uint32_t t : touched) {
      seen_.touches.push_back({t, 0, 0, true, !shape_.inference});
      const Allocation& a = allocations_[t];
      for (uint64_t at = 0; at < a.bytes; at += kGranule) granules.push_back(a.address + at);
    }
    granules_.push_back(granules);
  }

  Shape shape_;
  std::vector<Allocation> allocations_;
  policy::SeenPeriod seen_;
  std::vector<uint32_t> state_, activations_;
  std::vector<std::vector<uint64_t>> granules_;
  uint64_t next_address_ = kGranule;
};

class PlanExecution : public testing::TestWithParam<Shape> {};

TEST_P(PlanExecution, ReachesThePromiseWithoutAFault) {
  Training training(GetParam());
  training.Run(12);
  if (HasFatalFailure()) return;
  EXPECT_EQ(training.faults, 0u);
  EXPECT_EQ(training.early_fetches, 0u);
  EXPECT_LE(training.most_resident, training.capacity);
  EXPECT_GE(training.achieved, training.bound * 0.999);
  EXPECT_LE(training.achieved, training.promise * 1.05);
}

// The driver's calls take as long as a granule on the link, and one after the other twice as long:
// what leaves and comes back has to go in few of them, and not as whole layers that wait for each
// other's room.
TEST(PlanExecution, AFastLinkIsKeptBusyByCallsThatTakeAsLongAsAGranule) {
  for (const uint64_t launch_ns : {10'000, 60'000}) {
    Training pass({96, 8, 0, launch_ns, 1.5, /*inference=*/true, 53.0, /*call_ns=*/35'000,
                   /*lent=*/4 * kGranule});
    pass.Run(12);
    if (HasFatalFailure()) return;
    EXPECT_EQ(pass.faults, 0u);
    EXPECT_LE(pass.most_resident, pass.capacity + 4 * kGranule);
    EXPECT_GE(pass.achieved, pass.bound * 0.999);
    EXPECT_LE(pass.achieved, pass.bound * 1.05) << launch_ns;
    EXPECT_GT(pass.granules_of_a_call, 1.2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Regimes, PlanExecution,
    testing::Values(Shape{8, 3, 2, 1'500'000, 1.5},                             // bound by compute
                    Shape{8, 3, 2, 300'000, 1.5}, Shape{8, 3, 2, 10'000, 1.5},  // by the link
                    Shape{16, 4, 4, 500'000, 2.0}, Shape{16, 4, 4, 50'000, 2.0},
                    Shape{24, 2, 3, 200'000, 4.0}, Shape{12, 1, 1, 100'000, 1.25}));

}  // namespace
}  // namespace atp::shim
