// SPDX-License-Identifier: Apache-2.0
// Virtual memory management in every way, right and wrong: the program cannot tell that its memory
// is managed, but where managed memory cannot do what it asks; and then it is told.
#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

Finished Answers(const std::string& which, bool with, const Environment& more = {}) {
  Environment environment = {{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                             {"LD_PRELOAD", Preload({})},
                             {"ATP_SIM_GPU", which == "expandable" ? "h200" : "tiny"},
                             {"ATP_LOG", "error"}};
  if (with) environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
  for (const auto& [name, value] : more) environment[name] = value;
  const Finished run = RunChild({ATP_PROGRAM_FOLDER "/range_paths", which}, environment);
  EXPECT_EQ(run.exit_code, 0) << run.err << " signal " << run.signal;
  return run;
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
                         testing::Values("use", "wrong", "moves", "attributes", "numbers",
                                         "wished"),
                         [](const auto& test) { return std::string(test.param); });

TEST(RangePaths, ATerabyteOfAddressesAndTenThousandPagesThatComeAndGo) {
  const Finished run = Answers("expandable", true);
  EXPECT_NE(run.out.find("calls that worked: are 20000\nfree: CUDA_SUCCESS"), std::string::npos)
      << run.out.substr(0, 500);
}

TEST(RangePaths, ASecondMappingOfManagedMemoryIsRefusedAndTheLogNamesTheRemedy) {
  const Finished run = Answers("aliases", true, {{"ATP_LOG", "warn"}});
  EXPECT_NE(run.out.find("second mapping: CUDA_ERROR_NOT_SUPPORTED"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("ATP_DISABLE=vmm"), std::string::npos) << run.err;
  const std::string native = Answers("aliases", false).out;
  EXPECT_NE(native.find("second mapping: CUDA_SUCCESS"), std::string::npos) << native;
  EXPECT_EQ(Answers("aliases", true, {{"ATP_DISABLE", "vmm"}}).out, native);
}

}  // namespace
}  // namespace atp::preload
