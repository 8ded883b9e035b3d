// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory in every way, right and wrong: the program cannot tell that it is managed.
#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

std::string Answers(const std::string& which, bool with, const Environment& more = {}) {
  Environment environment = {{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                             {"LD_PRELOAD", Preload({})},
                             {"ATP_SIM_GPU", "tiny"},
                             {"ATP_LOG", "error"}};
  if (with) environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
  for (const auto& [name, value] : more) environment[name] = value;
  const Finished run = RunChild({ATP_PROGRAM_FOLDER "/pool_paths", which}, environment);
  EXPECT_EQ(run.exit_code, 0) << run.err << " signal " << run.signal;
  return run.out;
}

class PoolPathsTest : public testing::TestWithParam<const char*> {};

TEST_P(PoolPathsTest, AnswersAreThoseOfTheDriver) {
  const std::string native = Answers(GetParam(), false);
  EXPECT_GT(native.size(), 30u);
  for (const Environment& more :
       {Environment{}, Environment{{"ATP_POLICY", "managed"}}, Environment{{"ATP_BUDGET", "6MiB"}},
        Environment{{"ATP_DISABLE", "pools"}}, Environment{{"ATP_DISABLE", "slabs"}}}) {
    EXPECT_EQ(Answers(GetParam(), true, more), native);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, PoolPathsTest,
                         testing::Values("frees", "order", "streams", "many", "own", "numbers",
                                         "captured"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace atp::preload
