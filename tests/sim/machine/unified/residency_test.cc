// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/unified/residency.h"

#include <gtest/gtest.h>

namespace atp::sim {
namespace {

constexpr int kGpu = 0, kPeer = 1;

Policy With(int preferred, uint64_t accessed_by = 0, bool read_mostly = false) {
  Policy policy;
  policy.preferred = preferred;
  policy.accessed_by = accessed_by;
  policy.read_mostly = read_mostly;
  return policy;
}
Fault ByGpu(int resident, bool write = false, bool reaches = true) {
  return {kGpu, resident, write, reaches, true};
}

TEST(Residency, RuleOneAReadOfReadMostlyDataIsDuplicatedAtTheReader) {
  EXPECT_EQ(ChooseResidency(With(kHost, 1, true), ByGpu(kHost)), (Residency{kGpu, true}));
  EXPECT_EQ(ChooseResidency(With(kNoPlace, 0, true), {kHost, kGpu, false, false, false}),
            (Residency{kHost, true}));
}
TEST(Residency, AWriteOfReadMostlyDataIsNot) {
  EXPECT_EQ(ChooseResidency(With(kNoPlace, 0, true), ByGpu(kHost, true)), (Residency{kGpu, false}));
}
TEST(Residency, RuleTwoThePreferredProcessorGetsIt) {
  EXPECT_EQ(ChooseResidency(With(kGpu, 1), ByGpu(kHost)), (Residency{kGpu, false}));
}
TEST(Residency, RuleFourAFirstTouchGoesToThePreferredLocationElseToTheToucher) {
  EXPECT_EQ(ChooseResidency(With(kHost), ByGpu(kNoPlace)), (Residency{kHost, false}));
  EXPECT_EQ(ChooseResidency(With(kNoPlace), ByGpu(kNoPlace)), (Residency{kGpu, false}));
  Fault unreachable{kHost, kNoPlace, false, false, false};
  EXPECT_EQ(ChooseResidency(With(kGpu), unreachable), (Residency{kHost, false}));
}
TEST(Residency, RuleFiveAccessedByStaysWhereItIs) {
  EXPECT_EQ(ChooseResidency(With(kPeer, 1), ByGpu(kHost)), (Residency{kHost, false}));
  EXPECT_EQ(ChooseResidency(With(kNoPlace, 1), ByGpu(kPeer, false, false)),
            (Residency{kGpu, false}));
  EXPECT_EQ(ChooseResidency(With(kNoPlace, 2), ByGpu(kHost)), (Residency{kGpu, false}));
}
TEST(Residency, RuleSixAReachablePreferredLocationGetsIt) {
  EXPECT_EQ(ChooseResidency(With(kHost), ByGpu(kPeer)), (Residency{kHost, false}));
  EXPECT_EQ(ChooseResidency(With(kHost), ByGpu(kHost)), (Residency{kHost, false}));
}
TEST(Residency, RuleSevenElseTheFaultingProcessor) {
  EXPECT_EQ(ChooseResidency(With(kNoPlace), ByGpu(kHost)), (Residency{kGpu, false}));
  EXPECT_EQ(ChooseResidency(With(kNoPlace), ByGpu(kPeer, true)), (Residency{kGpu, false}));
}

}  // namespace
}  // namespace atp::sim
