// SPDX-License-Identifier: Apache-2.0
// Several programs on one machine: what they share and what each has for itself.
#include "sim/machine/member.h"
#include "tests/sim/machine/bench.h"

namespace atp::sim {
namespace {

// Programs 0 and 1; calls are made for one after the other, by one thread.
class Members : public testing::Test {
 protected:
  static constexpr uint64_t kAddress = uint64_t{1} << 40;

  void Make(uint64_t blocks) {
    bench_ = std::make_unique<Bench>(blocks);
    bench_->machine().AddMember(1);
    As(1);
    lane_ = machine().NewLane(0);
    stream_ = machine().NewStream(0, true);
    As(0);
  }
  void TearDown() override { As(0); }

  static void As(Member member) { SetCurrentMember(member); }
  TimingMachine& machine() { return bench_->machine(); }
  uint64_t Managed(Member member, uint64_t blocks) {
    const uint64_t address = FirstAddressOf(member) + kAddress;
    machine().AddManaged(member == 0 ? bench_->lane : lane_, address, blocks * kBlock);
    return address;
  }
  Time RunAsSecond(KernelWork work) {
    As(1);
    const Time start = std::max(machine().Now(lane_), machine().now());
    machine().SubmitKernel(lane_, stream_, std::move(work));
    machine().SyncStream(lane_, stream_);
    const Time took = machine().Now(lane_) - start;
    As(0);
    return took;
  }

  std::unique_ptr<Bench> bench_;
  Lane lane_ = 0;
  StreamId stream_ = 0;
};

TEST_F(Members, WhatCameFirstLeavesFirstWhoseverItIs) {
  Make(16);
  const uint64_t a = Managed(0, 12), b = Managed(1, 8);
  bench_->Read(a, 12 * kBlock);
  RunAsSecond(Bench::Sweep(b, 8 * kBlock));
  EXPECT_EQ(bench_->Where(b), 0);
  EXPECT_EQ(bench_->Where(a), kHost);
  EXPECT_EQ(bench_->Where(a + 3 * kBlock), kHost);
  EXPECT_EQ(bench_->Where(a + 4 * kBlock), 0);
  EXPECT_EQ(bench_->stats().evictions, 4u);
}

TEST_F(Members, TheSameAddressIsMemoryOfItsOwnInEach) {
  Make(16);
  const uint64_t a = Managed(0, 1), b = Managed(1, 1);
  bench_->Read(a, kBlock);
  EXPECT_EQ(bench_->Where(a), 0);
  EXPECT_NE(bench_->Where(b), 0);
}

TEST_F(Members, KernelsThatComputeAtTheSameTimeShareTheRate) {
  Make(16);
  const uint64_t a = Managed(0, 1), b = Managed(1, 1);
  bench_->Read(a, kBlock);
  RunAsSecond(Bench::Sweep(b, kBlock));
  EXPECT_EQ(RunAsSecond(Bench::Sweep(b, kBlock)), 100 * kUs) << "alone";
  machine().Spend(bench_->lane, machine().Now(lane_) - machine().Now(bench_->lane));
  machine().SubmitKernel(bench_->lane, bench_->stream, Bench::Sweep(a, kBlock));
  EXPECT_EQ(RunAsSecond(Bench::Sweep(b, kBlock)), 200 * kUs) << "beside another program's";
}

TEST_F(Members, EachHasALegacyStreamThatOnlyItsOwnWorkWaitsFor) {
  Make(16);
  const StreamId first = machine().LegacyStream(0);
  machine().SubmitDelay(bench_->lane, first, kSecond);
  As(1);
  EXPECT_NE(machine().LegacyStream(0), first);
  machine().SubmitDelay(lane_, stream_, kMs);
  machine().SyncDevice(lane_, 0);
  EXPECT_LT(machine().Now(lane_), 2 * kMs);
}

TEST_F(Members, WhatOneHadIsFreeWhenItHasEnded) {
  Make(16);
  const uint64_t before = machine().Info(0).free_bytes;
  const uint64_t b = Managed(1, 4);
  RunAsSecond(Bench::Sweep(b, 4 * kBlock));
  As(1);
  EXPECT_EQ(machine().AllocDevice(lane_, 0, 2 * kBlock), MachineStatus::kOk);
  machine().SubmitKernel(lane_, stream_, Bench::Sweep(b, 4 * kBlock));
  machine().DropMember(1);
  As(0);
  const uint64_t held = bench_->unified().memory(0).List(ChunkList::kFreeZero).size() * kBlock;
  EXPECT_EQ(machine().Info(0).free_bytes + held, before);
  bench_->Read(Managed(0, 8), 8 * kBlock);
  EXPECT_EQ(bench_->stats().evictions, 0u);
}

}  // namespace
}  // namespace atp::sim
