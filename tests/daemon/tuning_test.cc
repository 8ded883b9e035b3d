// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuning.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <numeric>

#include "daemon/service.h"
#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::Learned;
using protocol::SampleLearned;
using protocol::TrialState;
using protocol::Tuning;

constexpr uint64_t kMiB = 1u << 20;

// A sweep over 12 layers of 8 MiB with a budget of 64 MiB, of which 8 are head-room: what is kept
// free has to be moved in each period.
Learned Sweep() {
  Learned learned;
  learned.fingerprint = {"Tiny", 64 * kMiB, 56 * kMiB, {1}, {96 * kMiB}};
  learned.command = "sweep";
  learned.h2d = learned.d2h = 12e9;
  learned.budget_bytes = 64 * kMiB;
  learned.tuning.head_room_bytes = 8 * kMiB;
  protocol::LearnedPhase phase;
  for (uint32_t i = 0; i < 12; ++i) {
    phase.tensors.push_back({8 * kMiB, 0, 8 * kMiB, i});
    phase.launches.push_back({100 + i, 7, 4e-4, {i}, {i}});
  }
  phase.capacity_bytes = 56 * kMiB;
  phase.best_seconds = 0.01;
  phase.periods = 7;
  learned.phases.push_back(phase);
  return learned;
}

Tuning LessHeadRoom() { return {2 * kMiB}; }

TEST(TuneSearch, FindsWhatReplaysFasterAndIsTheSameEachTime) {
  const Found found = SearchTuning(Sweep(), {});
  ASSERT_FALSE(found.better.empty()) << found.reason;
  EXPECT_LT(found.better[0].head_room_bytes, 8 * kMiB);
  EXPECT_LT(found.after_seconds, found.before_seconds);
  EXPECT_EQ(SearchTuning(Sweep(), {}).better, found.better);
}

TEST(TuneSearch, EachOfSeveralCandidatesIsFasterThanWhatIsInForce) {
  SearchOptions options;
  options.candidates = 3;
  const Found found = SearchTuning(Sweep(), options);
  ASSERT_EQ(found.better.size(), 3u) << found.reason;
  const auto sum = [](const std::vector<double>& v) { return std::reduce(v.begin(), v.end()); };
  const double in_force = sum(ReplayTuning(Sweep(), Sweep().tuning, options.costs, 7));
  for (const Tuning& tuning : found.better) {
    EXPECT_LT(sum(ReplayTuning(Sweep(), tuning, options.costs, 7)), in_force);
  }
}

TEST(TuneSearch, WhatIsBestAlreadyIsLeftAlone) {
  Learned learned = Sweep();
  learned.tuning = SearchTuning(learned, {}).better.at(0);
  EXPECT_TRUE(SearchTuning(learned, {}).better.empty());
}

TEST(TuneSearch, WhatCannotBeReplayedIsSaidInWords) {
  Learned learned = Sweep();
  learned.h2d = 0;
  EXPECT_EQ(SearchTuning(learned, {}).reason, "its link was not measured");
  learned = Sweep();
  learned.phases[0].launches[3].seconds = 0;
  EXPECT_EQ(SearchTuning(learned, {}).reason, "its launches were not measured");
  learned = Sweep();
  learned.budget_bytes = 0;
  EXPECT_TRUE(SearchTuning(learned, {}).better.empty());
  learned.phases.clear();
  EXPECT_EQ(SearchTuning(learned, {}).reason, "it has no phase");
  learned = Sweep();
  learned.budget_bytes = 10 * kMiB;  // a launch fits, head-room does not
  EXPECT_TRUE(SearchTuning(learned, {}).better.empty());
}

TEST(TuneSearch, ItEndsWhenItIsTold) {
  SearchOptions options;
  unsigned calls = 0;
  options.go_on = [&] { return ++calls < 3; };
  const Found found = SearchTuning(Sweep(), options);
  EXPECT_TRUE(found.better.empty());
  EXPECT_EQ(found.evaluations, 3u);
}

TEST(Tuner, RestsSoThatWorkIsItsShare) {
  using Seconds = std::chrono::duration<double>;
  EXPECT_DOUBLE_EQ(RestAfter(Seconds(2), 0.5).count(), 2);
  EXPECT_DOUBLE_EQ(RestAfter(Seconds(1), 0.25).count(), 3);
  EXPECT_DOUBLE_EQ(RestAfter(Seconds(1), 1).count(), 0);
}

class TuningTest : public testing::Test {
 protected:
  TuningTest()
      : folder_(testing::TempDir() + "tuning." + std::to_string(getpid())),
        store_((std::filesystem::remove_all(folder_), folder_ / "db"), {}) {}
  ~TuningTest() override { std::filesystem::remove_all(folder_); }

  // As a run tells; what the store then knows.
  Learned Tell(Service* service, const Learned& learned) {
    protocol::Message message;
    message.kind = protocol::MessageKind::kTell;
    message.job = ++job_;
    std::vector<protocol::Fd> bodies;
    bodies.push_back(protocol::MakeBody(protocol::Write(learned)));
    service->Answer(1, message, bodies);
    return Known();
  }
  Learned Known() {
    Learned known;
    std::string error;
    EXPECT_TRUE(protocol::Read(*store_.Get(1, store_.List(1).at(0).id), &known, &error)) << error;
    return known;
  }
  // Ticks until a search that begins at this time has ended.
  static void Run(daemon::Tuning* tuning, daemon::Tuning::Clock::time_point now) {
    tuning->Tick(now);
    tuning->AwaitSearch();
    tuning->Tick(now);
  }

  std::filesystem::path folder_;
  Store store_;
  uint64_t job_ = 0;
};

TEST_F(TuningTest, WhatReplaysFindIsOfferedTriedAndKeptOrRejectedByWhatTheJobMeasures) {
  TuningOptions options;
  options.idle = std::chrono::seconds(10);
  options.share = 1;
  options.nice = 0;
  daemon::Tuning tuning(&store_, options);
  Service service(&store_, &tuning);
  Tell(&service, Sweep());
  const auto now = daemon::Tuning::Clock::now();
  tuning.Busy(now);
  tuning.Tick(now + std::chrono::seconds(9));
  EXPECT_FALSE(tuning.searching());  // not idle for long enough
  Run(&tuning, now + std::chrono::seconds(10));
  const Learned offered = Known();
  ASSERT_EQ(offered.trial, TrialState::kOffered);
  EXPECT_EQ(offered.tuning.head_room_bytes, 8 * kMiB);

  Learned run = Sweep();  // began before the offer
  EXPECT_EQ(Tell(&service, run).trial, TrialState::kOffered);
  run.candidate = offered.candidate;
  run.trial = TrialState::kLost;
  run.before_seconds = 0.010;
  run.trial_seconds = 0.011;
  const Learned lost = Tell(&service, run);
  EXPECT_EQ(lost.rejected, std::vector<Tuning>{offered.candidate});
  EXPECT_EQ(lost.tuning.head_room_bytes, 8 * kMiB);

  const auto decisions = store_.List(1)[0].decisions;
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].what, "offered");
  EXPECT_NE(decisions[0].reason.find("replays are"), std::string::npos);
  EXPECT_EQ(decisions[1].what, "rejected");
  EXPECT_DOUBLE_EQ(decisions[1].after_seconds, 0.011);
  Run(&tuning, now + std::chrono::seconds(100));  // the same replays would say the same
  EXPECT_EQ(store_.List(1)[0].decisions.size(), 2u);

  // The next one is on offer then, until none is left.
  size_t tried = 1;
  for (Learned known = lost; known.trial == TrialState::kOffered; ++tried) {
    EXPECT_NE(known.candidate, run.candidate);
    run.candidate = known.candidate;
    known = Tell(&service, run);
  }
  EXPECT_EQ(tried, 1 + offered.further.size());
  EXPECT_EQ(Known().rejected.size(), tried);

  for (int i = 0; i < 64; ++i) Tell(&service, Sweep());  // runs that know nothing of it
  tuning.Busy(now);
  Run(&tuning, now + std::chrono::seconds(1000));
  EXPECT_EQ(store_.List(1)[0].decisions.back().what, "nothing better");
  EXPECT_NE(Known().trial, TrialState::kOffered);
}

TEST(MergeTuning, AWinStaysAndLaterRunsDoNotUndoIt) {
  Learned stored = Sweep(), told = Sweep();
  stored.candidate = told.candidate = LessHeadRoom();
  stored.further = {{kMiB}};
  stored.trial = TrialState::kOffered;
  told.trial = TrialState::kWon;
  told.before_seconds = 2, told.trial_seconds = 1;
  Store::Decision decision;
  MergeTuning(&stored, &told, &decision);
  EXPECT_EQ(decision.what, "kept");
  EXPECT_EQ(told.tuning, LessHeadRoom());
  EXPECT_EQ(told.trial, TrialState::kOffered);  // whether the next one is faster still
  EXPECT_EQ(told.candidate, stored.further[0]);
  EXPECT_TRUE(told.further.empty());
  Learned later = Sweep();  // of a run that asked before
  MergeTuning(&told, &later, &decision);
  EXPECT_EQ(later.tuning, LessHeadRoom());
  EXPECT_TRUE(decision.what.empty());
}

TEST(MergeTuning, ARunDecidesOnlyAboutWhatItWasOffered) {
  Store::Decision decision;
  Learned told = Sweep();
  told.trial = TrialState::kWon;
  told.candidate = LessHeadRoom();
  Learned stored = Sweep();
  MergeTuning(&stored, &told, &decision);
  EXPECT_TRUE(decision.what.empty());
  EXPECT_EQ(told.tuning, Sweep().tuning);
  told.trial = TrialState::kWon;
  told.candidate = {6 * kMiB};
  stored.trial = TrialState::kOffered;
  stored.candidate = LessHeadRoom();
  MergeTuning(&stored, &told, &decision);
  EXPECT_TRUE(decision.what.empty());
  EXPECT_EQ(told.trial, TrialState::kOffered);
  EXPECT_EQ(told.candidate, LessHeadRoom());
}

TEST(MergeTuning, ChoicesForAnotherBudgetAreForgotten) {
  Learned stored = Sweep(), told = Sweep();
  stored.tuning = LessHeadRoom();
  told.fingerprint.capacity_bytes *= 2;
  told.tuning.head_room_bytes = 10 * kMiB;
  Store::Decision decision;
  MergeTuning(&stored, &told, &decision);
  EXPECT_EQ(told.tuning.head_room_bytes, 10 * kMiB);
}

}  // namespace
}  // namespace atp::daemon
