// SPDX-License-Identifier: Apache-2.0
#include "shim/mover.h"

#include <gtest/gtest.h>

#include "fake_world.h"

namespace atp::shim {
namespace {

// A program that reads `tensors` granules in a circle, one a launch, on a device that holds `fits`
// of them.
class Cycle {
 public:
  static constexpr uint64_t kLaunchNs = 200'000;
  static constexpr double kRate = 25.0;  // bytes per ns: a granule takes 84 us

  Cycle(uint32_t tensors, uint32_t fits, uint64_t launch_ns = kLaunchNs)
      : tensors_(tensors),
        fits_(fits),
        launch_ns_(launch_ns),
        world(kRate, fits * kGranule),
        traffic(&world, fits * kGranule),
        allocations_(tensors) {
    executor_ = MakeLaneExecutor(FakeWorld::Calls(), traffic.movers(), 1);
    for (uint32_t i = 0; i < tensors; ++i) {
      allocations_[i].id = i + 1;
      allocations_[i].address = (i + 1) * kGranule;
      allocations_[i].bytes = allocations_[i].mapped_bytes = kGranule;
    }
    schedule_ = std::make_shared<Schedule>(BuildSchedule(Plan(), Tensors(), tensors, kPieceBytes));
  }

  // The tensors that never leave.
  std::vector<Action> Kept() {
    std::vector<Action> kept(fits_ - 2);
    for (uint32_t i = 0; i < kept.size(); ++i) {
      kept[i].allocation = &allocations_[i];
      kept[i].bytes = kGranule;
    }
    return kept;
  }

  // `missing` are on the host, as is one tensor when nothing is said.
  void Start(std::vector<Action> evict_first = {}, std::vector<Action> missing = {}) {
    // Out at the start: those that wrap around. All others are resident already, but for one that
    // is fetched before its launch.
    const std::vector<Action>& out = schedule_->out_at_start;
    evict_first.insert(evict_first.end(), out.begin(), out.end());
    if (missing.empty()) missing.push_back(Kept().front());
    const auto there = static_cast<uint32_t>(missing.size());
    for (uint32_t i = there; i < fits_; ++i) world.MakeResident(allocations_[i].address, kGranule);
    traffic.Activate(schedule_, evict_first, missing,
                     (tensors_ - out.size() - missing.size()) * kGranule);
  }

  void Run(uint32_t periods) {
    for (const uint64_t end = period_ + periods; period_ < end; ++period_) {
      for (uint32_t position = 0; position < tensors_; ++position) Launch(period_, position);
    }
  }

  bool stuck = false;

 private:
  // Keeps the first fits-2 tensors resident; the others take turns in two granules.
  policy::Plan Plan() const {
    policy::Plan plan;
    plan.feasible = true;
    plan.period_seconds = static_cast<double>(tensors_ * launch_ns_) * 1e-9;
    const uint32_t kept = fits_ - 2;
    for (uint32_t i = kept; i < tensors_; ++i) {
      policy::Move move;
      move.tensor = i;
      move.bytes = kGranule;
      move.after = i;
      move.before = i;
      move.kind = policy::Move::Kind::kEvict;
      move.start = i;
      plan.evictions.push_back(move);
      move.kind = policy::Move::Kind::kFetch;
      move.start = i - 1;
      plan.fetches.push_back(move);
    }
    return plan;
  }
  std::vector<Placed> Tensors() {
    std::vector<Placed> placed;
    for (uint32_t i = 0; i < tensors_; ++i) placed.push_back({&allocations_[i], 0, kGranule, i});
    return placed;
  }
  void Launch(uint64_t period, uint32_t position) {
    std::unique_lock lock(traffic.mutex());
    executor_->CatchUp(lock);
    if (traffic.active()) {
      const uint64_t needed = traffic.Need(period, position);
      const auto issued = [&] { return !traffic.active() || traffic.FetchesIssued(needed); };
      if (!issued() && !executor_->Await(lock, issued)) stuck = true;
      const Traffic::FetchEvents last = traffic.LastFetches(needed);
      for (unsigned i = 0; i < last.count; ++i) world.StreamWait(last.events[i]);
    }
    world.Launch(launch_ns_, {allocations_[position].address});
    if (!traffic.active() || schedule_->flag_index[position] == Schedule::kNotFlagged) return;
    const uint64_t flag = period * schedule_->flagged + schedule_->flag_index[position];
    const auto free = [&] { return !traffic.active() || traffic.MarkFree(flag); };
    if (!free() && !executor_->Await(lock, free)) stuck = true;
    LaunchMark& mark = traffic.MarkSlot(flag);
    if (mark.events[0] == nullptr) mark.events[0] = world.NewEvent();
    world.Record(mark.events[0], nullptr, false);
    mark.count = 1;
    traffic.MarkRecorded(flag);
  }

  uint32_t tensors_, fits_;
  uint64_t launch_ns_;
  uint64_t period_ = 0;

 public:
  FakeWorld world;
  Traffic traffic;

 private:
  std::vector<Allocation> allocations_;
  std::shared_ptr<const Schedule> schedule_;
  std::unique_ptr<Executor> executor_;
};

TEST(Mover, ALaunchNeverMeetsAMissingGranule) {
  Cycle cycle(12, 8);
  cycle.Start();
  cycle.Run(20);
  EXPECT_FALSE(cycle.stuck);
  EXPECT_EQ(cycle.world.faults, 0u);
  EXPECT_EQ(cycle.world.early_fetches, 0u);
}

TEST(Mover, ResidentBytesNeverExceedTheCapacity) {
  Cycle cycle(12, 8);
  cycle.Start();
  cycle.Run(20);
  EXPECT_GT(cycle.world.most_resident, 0u);
  EXPECT_LE(cycle.world.most_resident, 8 * kGranule);
}

// What a schedule expects on the device and finds on the host comes during its first period: the
// program does not wait for all of it.
TEST(Mover, ALaunchWaitsOnlyForWhatComesBackForItself) {
  Cycle cycle(12, 8);
  std::vector<Action> missing = cycle.Kept();
  for (uint32_t i = 0; i < missing.size(); ++i) missing[i].position = i;
  cycle.Start({}, missing);
  const uint64_t first = cycle.traffic.Need(0, 0);
  EXPECT_TRUE(cycle.traffic.HasFetches(0, 3));
  EXPECT_EQ(cycle.traffic.Need(0, 3), first + 3 * 2);  // and a touch of each
  cycle.Run(3);
  EXPECT_FALSE(cycle.stuck);
  EXPECT_EQ(cycle.world.faults, 0u);
  EXPECT_LE(cycle.world.most_resident, 8 * kGranule);
  // Six granules leave before it starts, and the first of six comes back: 588 us, not 1,008.
  const double waits = static_cast<double>(cycle.world.compute_free() - 3 * 12 * Cycle::kLaunchNs);
  EXPECT_LT(waits, 8 * static_cast<double>(kGranule) / Cycle::kRate);
}

TEST(Mover, MovesHideBehindLongLaunches) {
  Cycle cycle(12, 8);
  cycle.Start();
  cycle.Run(4);
  const uint64_t before = cycle.world.compute_free();
  cycle.Run(10);
  // 12 launches of 200 us; six granules each way a period take 504 us: compute is the bound.
  const double period = static_cast<double>(cycle.world.compute_free() - before) / 10;
  EXPECT_LT(period, 1.01 * 12 * Cycle::kLaunchNs);
}

TEST(Mover, TheLinkIsTheBoundForShortLaunches) {
  Cycle cycle(12, 8, 2'000);
  cycle.Start();
  cycle.Run(4);
  const uint64_t before = cycle.world.compute_free();
  cycle.Run(20);
  EXPECT_EQ(cycle.world.faults, 0u);
  const double period = static_cast<double>(cycle.world.compute_free() - before) / 20;
  const double link = 6 * static_cast<double>(kGranule) / Cycle::kRate;
  EXPECT_GE(period, 0.999 * link);
  // Two granules take turns: a fetch waits for the eviction before it, so both directions alternate
  // at worst.
  EXPECT_LE(period, 2.1 * link);
}

TEST(Mover, TwoRunsAreEqualToTheLastDigit) {
  uint64_t ends[2];
  for (int i = 0; i < 2; ++i) {
    Cycle cycle(16, 9);
    cycle.Start();
    cycle.Run(7);
    ends[i] = cycle.world.compute_free();
  }
  EXPECT_EQ(ends[0], ends[1]);
}

TEST(Mover, WhatStaysIsTouchedOnceInSomePeriods) {
  Cycle cycle(12, 8);
  cycle.Start();
  cycle.Run(400);
  EXPECT_FALSE(cycle.stuck);
  EXPECT_EQ(cycle.world.faults, 0u);
  // Six tensors never leave.
  for (uint64_t address = kGranule; address <= 6 * kGranule; address += kGranule) {
    EXPECT_GT(cycle.world.fetches[address], 1u) << address;
    EXPECT_LT(cycle.world.fetches[address], 400u) << address;
  }
}

// On real threads nobody wakes the program when a mover merely looks, so what a skipped touch makes
// true must be true as soon as the fetch before it has returned.
TEST(Mover, TouchesThatAreLeftOutNeedNoOtherLookOfAMover) {
  Cycle cycle(12, 8);
  cycle.Start();
  Traffic& traffic = cycle.traffic;
  std::unique_lock lock(traffic.mutex());
  for (uint64_t flag = 0; flag < 6; ++flag) {
    traffic.MarkSlot(flag).count = 0;
    traffic.MarkRecorded(flag);
  }
  const uint64_t first_period = traffic.Need(0, 11);
  const uint64_t second_period = traffic.Need(1, 5);  // six touches more, all left out
  const std::vector<Mover*> movers = traffic.movers();
  for (int step = 0; step < 100 && !traffic.FetchesIssued(first_period); ++step) {
    for (Mover* mover : movers) {
      Poll poll = mover->Look();
      if (poll.kind == Poll::Kind::kEvent) mover->OnEvent(poll.event);
      if (poll.kind != Poll::Kind::kReady) continue;
      mover->Act(lock);
      mover->Finish();
      if (traffic.FetchesIssued(first_period)) break;
    }
  }
  ASSERT_TRUE(traffic.FetchesIssued(first_period));
  EXPECT_TRUE(traffic.FetchesIssued(second_period));
}

TEST(Mover, ARefusedEvictionDoesNotUseUpRoomForEver) {
  Cycle cycle(12, 8);
  cycle.Start();
  cycle.Run(2);
  for (int i = 0; i < 7; ++i) {  // one less than ends the schedule
    cycle.world.FailEvict(1);
    cycle.Run(2);
  }
  EXPECT_TRUE(cycle.traffic.active());
  EXPECT_EQ(cycle.traffic.counters().errors, 7u);
  EXPECT_FALSE(cycle.stuck);
}

TEST(Mover, AnEventOfAnEarlierScheduleIsNotTakenForOneOfThisSchedule) {
  Cycle cycle(12, 8);
  std::vector<Mover*> movers = cycle.traffic.movers();
  const auto start = [&] {
    LaunchMark& mark = cycle.traffic.StartMark();
    if (mark.events[0] == nullptr) mark.events[0] = cycle.world.NewEvent();
    mark.count = 1;
    cycle.Start();
  };
  start();
  ASSERT_EQ(movers[0]->Look().kind, Poll::Kind::kEvent);
  start();  // a thread that waited for the old event comes back only now
  movers[0]->OnEvent(cycle.traffic.StartMark().events[0]);
  EXPECT_EQ(movers[0]->Look().kind, Poll::Kind::kEvent);
  movers[0]->OnEvent(cycle.traffic.StartMark().events[0]);
  EXPECT_EQ(movers[0]->Look().kind, Poll::Kind::kReady);
}

// Movers are woken for news only: waking them takes far longer than a launch that has none.
TEST(Mover, ALaunchThatNeedsNothingNewIsNoNewsForTheMovers) {
  Cycle cycle(12, 8);
  cycle.Start();
  Traffic& traffic = cycle.traffic;
  std::unique_lock lock(traffic.mutex());
  bool news = false;
  traffic.Need(0, 3, &news);
  EXPECT_TRUE(news);
  traffic.Need(0, 3, &news);
  EXPECT_FALSE(news);
  traffic.Need(0, 11, &news);
  EXPECT_TRUE(news);
}

// Threads that launch in turns may tell of their launches in another order.
TEST(Mover, AMarkThatIsToldLateTakesNoLaterOneBack) {
  Cycle cycle(12, 8);
  cycle.Start();
  Traffic& traffic = cycle.traffic;
  std::unique_lock lock(traffic.mutex());
  traffic.Need(0, 11);
  traffic.MarkRecorded(3);
  traffic.MarkRecorded(1);
  Mover* evict = traffic.movers().front();
  unsigned left = 0;
  for (; evict->Look().kind == Poll::Kind::kReady; ++left) {
    evict->Act(lock);
    evict->Finish();
  }
  EXPECT_EQ(left, 6 + 4u);  // before the first period, and behind the first four marks
}

// Residency is believed, not asked for: a call that outlives its schedule has moved its range too.
TEST(Mover, ACallThatOutlivesItsScheduleIsStillAMove) {
  struct Observer : Traffic::Observer {
    void OnMoved(const Action&, bool to_device) override { ++moved[to_device]; }
    bool IsDuplicated(const Action&) override { return false; }
    int moved[2] = {0, 0};
  } observer;
  Cycle cycle(12, 8);
  cycle.Start();
  Traffic& traffic = cycle.traffic;
  traffic.Observe(&observer);
  std::unique_lock lock(traffic.mutex());
  traffic.Need(0, 11);
  Mover* evict = traffic.movers().front();
  while (observer.moved[false] < 6) {  // all that is evicted first: then the fetch mover may act
    ASSERT_EQ(evict->Look().kind, Poll::Kind::kReady);
    evict->Act(lock);
    if (observer.moved[false] == 5) break;  // the last one is inside the driver
    evict->Finish();
  }
  traffic.Deactivate();
  EXPECT_FALSE(traffic.Quiet());
  evict->Finish();
  EXPECT_TRUE(traffic.Quiet());
  EXPECT_EQ(observer.moved[false], 6);

  cycle.Start();
  Mover* fetch = traffic.movers().back();
  while (evict->Look().kind == Poll::Kind::kReady && traffic.Need(0, 11) > 0) {
    evict->Act(lock);
    evict->Finish();
  }
  ASSERT_EQ(fetch->Look().kind, Poll::Kind::kReady);
  fetch->Act(lock);
  traffic.Deactivate();
  fetch->Finish();
  EXPECT_EQ(observer.moved[true], 1);
}

// Two tensors that leave and come back, the second one across the period's end.
policy::Plan PlanOfTwo(std::array<double, 2> evict_start, std::array<double, 2> fetch_start) {
  policy::Plan plan;
  plan.period_seconds = 3;
  for (uint32_t t = 0; t < 2; ++t) {
    policy::Move move;
    move.tensor = t;
    move.bytes = kGranule;
    move.after = t;
    move.before = t == 0 ? 2 : 0;
    move.start = evict_start[t];
    plan.evictions.push_back(move);
    move.kind = policy::Move::Kind::kFetch;
    move.start = fetch_start[t];
    plan.fetches.push_back(move);
  }
  return plan;
}

// By the plan both come back before they or the other one leave again.
class Turns : public Traffic::Observer {
 public:
  Turns() : world(25.0, 8 * kGranule), traffic(&world, 8 * kGranule) {
    for (uint32_t t = 0; t < 2; ++t) {
      allocations_[t].id = t + 1;
      allocations_[t].address = (t + 1) * kGranule;
      allocations_[t].bytes = allocations_[t].mapped_bytes = kGranule;
    }
    const policy::Plan plan = PlanOfTwo({1.0, 2.0}, {1.9, 0.5});
    const std::vector<Placed> placed = {{&allocations_[0], 0, kGranule, 0},
                                        {&allocations_[1], 0, kGranule, 1}};
    schedule = std::make_shared<Schedule>(BuildSchedule(plan, placed, 3, kGranule, false));
    traffic.Observe(this);
    traffic.UseEvictMovers(2);  // the turns below are those of two
  }
  void OnMoved(const Action& action, bool to_device) override {
    moves += (to_device ? "in " : "out ") + std::to_string(action.allocation->id) + ", ";
  }
  bool IsDuplicated(const Action&) override { return false; }
  // Some periods; whoever may act does, evictions first. What moves in the last one.
  std::string Run(uint64_t room) {
    traffic.SetRoom(room);
    std::unique_lock lock(traffic.mutex());
    const std::vector<Mover*> movers = traffic.movers();
    traffic.Activate(schedule, schedule->out_at_start, {}, kGranule);
    for (uint64_t period = 0; period < 4; ++period) {
      traffic.Need(period, 2);
      moves.clear();
      for (uint64_t flag = 2 * period; flag < 2 * period + 2; ++flag) {
        traffic.MarkSlot(flag).count = 0;
        traffic.MarkRecorded(flag);
      }
      for (int step = 0; step < 20; ++step) {
        for (Mover* mover : movers) {
          const Poll poll = mover->Look();
          if (poll.kind == Poll::Kind::kEvent) mover->OnEvent(poll.event);
          if (poll.kind != Poll::Kind::kReady) continue;
          mover->Act(lock);
          mover->Finish();
        }
      }
    }
    return moves;
  }
  FakeWorld world;
  Traffic traffic;
  std::shared_ptr<const Schedule> schedule;
  std::string moves;

 private:
  std::array<Allocation, 2> allocations_;
};

TEST(Mover, AnEvictionIsPutOffBehindTheFetchesThatThePlanBeginsBeforeIt) {
  Turns turns;
  EXPECT_EQ(turns.schedule->behind, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(turns.Run(8 * kGranule), "out 1, in 1, out 2, in 2, ");
}

// The second tensor leaves at 0.6 of the period after the one that used it: behind both fetches of
// its own period, and the one that begins before in the next.
TEST(Mover, AnEvictionIsPutOffIntoTheNextPeriod) {
  policy::Plan plan = PlanOfTwo({1.0, 0.6}, {1.9, 2.5});
  plan.launch_start = {0, 1, 2};
  plan.launch_end = {1, 2, 3};
  std::array<Allocation, 2> allocations;
  const std::vector<Placed> placed = {{&allocations[0], 0, kGranule, 0},
                                      {&allocations[1], 0, kGranule, 1}};
  EXPECT_EQ(BuildSchedule(plan, placed, 3, kGranule, false).behind, (std::vector<uint32_t>{1, 3}));
}

TEST(Mover, AnEvictionThatAFetchNeedsTheRoomOfIsNotPutOff) {
  Turns turns;
  EXPECT_EQ(turns.Run(kGranule), "out 1, in 2, out 2, in 1, ");
}

// Plain memory has taken some of the device since: the movers keep out of it.
TEST(Mover, NoMoreThanTheRoomIsEverFilled) {
  Cycle cycle(12, 8);
  cycle.traffic.SetRoom(7 * kGranule);
  cycle.Start();
  cycle.Run(10);
  EXPECT_LE(cycle.world.most_resident, 7 * kGranule);
}

TEST(Mover, WhatIsEvictedFirstCountsAsUsedUntilItHasLeft) {
  Cycle cycle(12, 8);
  Allocation stranger;
  stranger.id = 99;
  stranger.address = 99 * kGranule;
  stranger.bytes = stranger.mapped_bytes = kGranule;
  Action action;
  action.allocation = &stranger;
  action.bytes = kGranule;
  cycle.Start({action});
  EXPECT_TRUE(cycle.traffic.Uses(&stranger));
  cycle.Run(1);
  EXPECT_FALSE(cycle.traffic.Uses(&stranger));
}

TEST(Mover, RefusedHintsEndTheScheduleAndTheProgramGoesOn) {
  Cycle cycle(12, 8);
  cycle.Start();
  for (int i = 0; i < 8; ++i) {
    cycle.world.FailEvict(1);
    cycle.Run(1);
  }
  EXPECT_FALSE(cycle.traffic.active());
  EXPECT_EQ(cycle.traffic.counters().errors, 8u);
}

}  // namespace
}  // namespace atp::shim
