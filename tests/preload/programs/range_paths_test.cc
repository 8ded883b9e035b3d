// SPDX-License-Identifier: Apache-2.0
// Virtual memory management in every way, right and wrong: the program cannot tell that its memory
// is managed; and where it must be told, nothing of its own is lost.
#include <gtest/gtest.h>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

Finished Answers(const std::string& which, bool with, Environment more = {}) {
  if (which == "expandable") more.insert({"ATP_SIM_GPU", "h200"});
  return RunOnTinyCard({ATP_PROGRAM_FOLDER "/range_paths", which}, with, more);
}

class RangePathsTest : public testing::TestWithParam<const char*> {};

TEST_P(RangePathsTest, AnswersAreThoseOfTheDriver) {
  const std::string native = Answers(GetParam(), false).out;
  EXPECT_GT(native.size(), 100u);
  for (const Environment& more :
       {Environment{}, Environment{{"ATP_POLICY", "managed"}}, Environment{{"ATP_BUDGET", "6MiB"}},
        Environment{{"ATP_DISABLE", "vmm"}}, Environment{{"ATP_DISABLE", "discard"}}}) {
    EXPECT_EQ(Answers(GetParam(), true, more).out, native);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, RangePathsTest,
                         testing::Values("use", "wrong", "moves", "attributes", "numbers", "wished",
                                         "aliases", "stubborn", "exported", "early"),
                         [](const auto& test) { return std::string(test.param); });

TEST(RangePaths, ATerabyteOfAddressesAndTenThousandPagesThatComeAndGo) {
  const Finished run = Answers("expandable", true);
  EXPECT_NE(run.out.find("calls that worked: are 20000\nfree: CUDA_SUCCESS"), std::string::npos)
      << run.out.substr(0, 500);
}

// Managed memory needs a context, and a range cannot become managed later at the same address.
TEST(RangePaths, AddressesReservedBeforeAContextAreTheDriversAndThatIsSaid) {
  const Finished run = Answers("early", true, {{"ATP_LOG", "info"}});
  EXPECT_NE(run.err.find("a range of 16.0 MiB stays the driver's: no context is current"),
            std::string::npos)
      << run.err;
}

TEST(RangePaths, ASecondMappingTurnsTheRangeIntoPlainMemoryAndTheLogSaysSo) {
  const Finished run = Answers("aliases", true, {{"ATP_LOG", "info"}});
  EXPECT_NE(run.out.find("second mapping: CUDA_SUCCESS"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("is the driver's from now on, with 3 mappings"), std::string::npos)
      << run.err;
  EXPECT_EQ(run.err.find("WARN"), std::string::npos) << run.err;
}

TEST(RangePaths, WhatDoesNotFitTheCardStaysAsItIsAndTheLogNamesTheRemedy) {
  const Finished run =
      Answers("crowded", true, {{"ATP_LOG", "warn"}, {"ATP_SIM_MEMORY", "33554432"}});
  EXPECT_NE(run.out.find("second mapping: CUDA_ERROR_NOT_SUPPORTED\npieces as they were: are 12\n"
                         "unmap: CUDA_SUCCESS\nsecond mapping: CUDA_SUCCESS\n"
                         "access: CUDA_SUCCESS\nvalue through the second: is 1\n"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.err.find("plain memory in its place is refused (error 2)"), std::string::npos)
      << run.err;
  EXPECT_NE(run.err.find("Remedy"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("ATP_DISABLE=vmm"), std::string::npos) << run.err;
}

TEST(RangePaths, WhateverTheDriverRefusesOnceChangesNothing) {
  const std::string native = Answers("stubborn", false).out;
  for (const char* fault :
       {"cuMemAllocManaged:2=2", "cuMemAllocManaged:3=2", "cuMemFree_v2:1=1", "cuMemFree_v2:2=1",
        "cuMemAddressReserve:1=2", "cuMemAddressReserve:2=2", "cuMemAddressReserve:3=2",
        "cuMemCreate:2=2", "cuMemCreate:3=2", "cuMemMap:1=1", "cuMemMap:2=1", "cuMemSetAccess:1=1",
        "cuMemSetAccess:4=1", "cuMemcpyDtoD_v2:1=1", "cuMemcpyDtoD_v2:3=1"}) {
    const Finished run = Answers(
        "stubborn", true, {{"ATP_LOG", "warn"}, {"ATP_SIM_FAULT", fault}, {"ATP_BUDGET", "6MiB"}});
    EXPECT_EQ(run.out, native) << fault;
    EXPECT_NE(run.err.find("stays managed memory"), std::string::npos) << fault << run.err;
  }
}

TEST(RangePaths, ASecondMappingWhileAGraphIsRecordedIsRefusedWithoutHarmToTheRecording) {
  const std::string native = Answers("captured", false).out;
  EXPECT_NE(native.find("second mapping while recording: CUDA_SUCCESS"), std::string::npos);
  EXPECT_NE(native.find("value through the second: is 8"), std::string::npos) << native;
  const Finished run = Answers("captured", true, {{"ATP_LOG", "warn"}});
  EXPECT_NE(run.out.find("end: CUDA_SUCCESS\n"
                         "second mapping while recording: CUDA_ERROR_NOT_SUPPORTED\n"
                         "second mapping afterwards: CUDA_SUCCESS\n"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("value through the second: is 8"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("ATP_DISABLE=vmm"), std::string::npos) << run.err;
}

TEST(RangePaths, ASecondMappingOfMemoryWhoseContextIsGoneIsRefused) {
  const Finished run = Answers("orphaned", true, {{"ATP_LOG", "warn"}});
  EXPECT_NE(run.out.find("second mapping: CUDA_ERROR_NOT_SUPPORTED\nrelease: CUDA_SUCCESS\n"
                         "unmap: CUDA_SUCCESS\n"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.err.find("its context is gone"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace atp::preload
