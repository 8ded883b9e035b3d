// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory in every way, right and wrong: the program cannot tell that it is managed.
#include <gtest/gtest.h>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

std::string Answers(const std::string& which, bool with, const Environment& more = {}) {
  return RunOnTinyCard({ATP_PROGRAM_FOLDER "/pool_paths", which}, with, more).out;
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
