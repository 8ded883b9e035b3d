// SPDX-License-Identifier: Apache-2.0
// Order of streams and events, engines, and lanes that ask at different times.
#include "sim/machine/scheduler.h"

#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

class Streams : public testing::Test {
 protected:
  Streams() : bench_(8) {}
  Machine& m() { return bench_.machine(); }
  Lane lane() const { return bench_.lane; }
  void Kernel(StreamId stream, Time time) {
    KernelWork work;
    work.name = "k";
    work.resident_time = time;
    m().SubmitKernel(lane(), stream, work);
  }
  Time Mark(StreamId stream) {  // when everything before is done
    EventId event = m().NewEvent();
    m().Record(lane(), stream, event);
    marks_.push_back(event);
    return 0;
  }
  Time At(size_t mark) { return m().EventTime(marks_[mark]); }
  Bench bench_;
  std::vector<EventId> marks_;
};

TEST_F(Streams, AreFirstInFirstOut) {
  m().SubmitDelay(lane(), bench_.stream, 3 * kMs);
  Mark(bench_.stream);
  m().SubmitDelay(lane(), bench_.stream, 2 * kMs);
  Mark(bench_.stream);
  m().SyncStream(lane(), bench_.stream);
  EXPECT_EQ(At(0), 3 * kMs);
  EXPECT_EQ(At(1), 5 * kMs);
  EXPECT_EQ(m().Now(lane()), 5 * kMs);
}

TEST_F(Streams, WorkStartsNoEarlierThanItWasSubmitted) {
  m().Spend(lane(), 7 * kMs);
  Kernel(bench_.stream, kMs);
  Mark(bench_.stream);
  m().SyncStream(lane(), bench_.stream);
  EXPECT_EQ(At(0), 8 * kMs);
}

TEST_F(Streams, NonBlockingOnesRunBesideEachOtherButKernelsTakeTurns) {
  m().SubmitDelay(lane(), bench_.stream, 4 * kMs);
  Kernel(bench_.side, kMs);
  Kernel(bench_.side, kMs);
  Mark(bench_.side);
  Kernel(bench_.stream, kMs);
  Mark(bench_.stream);
  m().SyncDevice(lane(), 0);
  EXPECT_EQ(At(0), 2 * kMs);
  EXPECT_EQ(At(1), 5 * kMs);
  StreamId third = m().NewStream(0, false);
  Kernel(bench_.side, 3 * kMs);
  Kernel(third, kMs);
  Mark(third);
  m().SyncDevice(lane(), 0);
  EXPECT_EQ(At(2), 5 * kMs + 4 * kMs);
}

TEST_F(Streams, TheLegacyStreamWaitsForBlockingStreamsAndTheyForIt) {
  StreamId blocking = m().NewStream(0, true), legacy = m().LegacyStream(0);
  m().SubmitDelay(lane(), blocking, 3 * kMs);
  m().SubmitDelay(lane(), bench_.stream, 10 * kMs);  // non-blocking: not waited for
  m().SubmitDelay(lane(), legacy, kMs);
  Mark(legacy);
  m().SubmitDelay(lane(), blocking, kMs);
  Mark(blocking);
  m().SubmitDelay(lane(), bench_.side, kMs);
  Mark(bench_.side);
  m().SyncDevice(lane(), 0);
  EXPECT_EQ(At(0), 4 * kMs);
  EXPECT_EQ(At(1), 5 * kMs);
  EXPECT_EQ(At(2), kMs);
  EXPECT_EQ(m().Now(lane()), 10 * kMs);
}

TEST_F(Streams, AWaitHoldsBackWhatComesAfterIt) {
  EventId event = m().NewEvent();
  m().SubmitDelay(lane(), bench_.stream, 6 * kMs);
  m().Record(lane(), bench_.stream, event);
  m().Wait(lane(), bench_.side, event);
  m().SubmitDelay(lane(), bench_.side, kMs);
  Mark(bench_.side);
  m().SyncStream(lane(), bench_.side);
  EXPECT_EQ(At(0), 7 * kMs);
}

TEST_F(Streams, AWaitForAnEventThatWasNeverRecordedDoesNothing) {
  EventId event = m().NewEvent();
  m().Wait(lane(), bench_.side, event);
  EXPECT_TRUE(m().Done(lane(), bench_.side));
  EXPECT_TRUE(m().EventDone(lane(), event));
  EXPECT_EQ(m().EventTime(event), kNever);
}

TEST_F(Streams, AWaitMeansTheRecordingBeforeItNotALaterOne) {
  EventId event = m().NewEvent();
  m().SubmitDelay(lane(), bench_.stream, kMs);
  m().Record(lane(), bench_.stream, event);
  m().Wait(lane(), bench_.side, event);
  m().SubmitDelay(lane(), bench_.stream, 9 * kMs);
  m().Record(lane(), bench_.stream, event);
  Mark(bench_.side);
  m().SyncStream(lane(), bench_.side);
  EXPECT_EQ(At(0), kMs);
  EXPECT_FALSE(m().EventDone(lane(), event));
  m().SyncEvent(lane(), event);
  EXPECT_EQ(m().Now(lane()), 10 * kMs);
}

TEST_F(Streams, QueriesAreAnsweredAsOfTheLanesNow) {
  m().SubmitDelay(lane(), bench_.stream, 2 * kMs);
  Mark(bench_.stream);
  EXPECT_FALSE(m().Done(lane(), bench_.stream));
  m().Spend(lane(), kMs);
  EXPECT_FALSE(m().EventDone(lane(), marks_[0]));
  m().Spend(lane(), kMs);
  EXPECT_TRUE(m().EventDone(lane(), marks_[0]));
  EXPECT_TRUE(m().Done(lane(), bench_.stream));
  Lane late = m().NewLane(kMs);  // behind simulated time: at its own now the event was not done yet
  EXPECT_FALSE(m().EventDone(late, marks_[0]));
  EXPECT_EQ(m().Now(late), kMs);
}

TEST_F(Streams, WaitAnyStopsAtTheFirstCompletionOrTheDeadline) {
  EventId slow = m().NewEvent(), fast = m().NewEvent();
  m().SubmitDelay(lane(), bench_.stream, 5 * kMs);
  m().Record(lane(), bench_.stream, slow);
  m().SubmitDelay(lane(), bench_.side, 3 * kMs);
  m().Record(lane(), bench_.side, fast);
  std::vector<EventId> both{slow, fast};
  EXPECT_EQ(m().WaitAny(lane(), both, kMs), -1);
  EXPECT_EQ(m().Now(lane()), kMs);
  EXPECT_EQ(m().WaitAny(lane(), both, kNever), 1);
  EXPECT_EQ(m().Now(lane()), 3 * kMs);
  EXPECT_EQ(m().EventTime(slow), kNever);  // nothing later has been simulated
  EXPECT_EQ(m().WaitAny(lane(), std::span(both).subspan(0, 1), kNever), 0);
  EXPECT_EQ(m().Now(lane()), 5 * kMs);
  EXPECT_EQ(m().WaitAny(lane(), {}, 9 * kMs), -1);
  EXPECT_EQ(m().Now(lane()), 9 * kMs);
  EXPECT_EQ(m().WaitAny(lane(), {}, kNever), -1);
}

TEST_F(Streams, ALaneThatIsBehindActsAtSimulatedTimeWithoutBeingMoved) {
  m().SubmitDelay(lane(), bench_.stream, 5 * kMs);
  m().SyncStream(lane(), bench_.stream);
  Lane behind = m().NewLane(kMs);
  m().SubmitDelay(behind, bench_.side, kMs);
  EXPECT_EQ(m().Now(behind), kMs);
  Mark(bench_.side);
  m().SyncStream(behind, bench_.side);
  EXPECT_EQ(At(0), 6 * kMs);
}

TEST_F(Streams, ALaneThatRunsFarAheadWaitsForRoomInTheQueue) {
  for (int i = 0; i < 1024; ++i) m().SubmitDelay(lane(), bench_.stream, kMs);
  EXPECT_EQ(m().Now(lane()), 0);
  m().SubmitDelay(lane(), bench_.stream, kMs);
  EXPECT_EQ(m().Now(lane()), kMs);
}

TEST_F(Streams, EventNumbersAreUsedAgain) {
  EventId event = m().NewEvent();
  m().SubmitDelay(lane(), bench_.stream, kMs);
  m().Record(lane(), bench_.stream, event);
  m().Wait(lane(), bench_.side, event);
  m().DropEvent(event);
  EXPECT_EQ(m().NewEvent(), event);
  EXPECT_TRUE(m().EventDone(lane(), event));
  Mark(bench_.side);
  m().SyncStream(lane(), bench_.side);
  EXPECT_EQ(At(0), kMs);  // the queued wait kept what it waits for
}

}  // namespace
}  // namespace atp::sim
