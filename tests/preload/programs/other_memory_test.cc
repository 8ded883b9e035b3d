// SPDX-License-Identifier: Apache-2.0
// Arrays, host memory, imported memory and managed memory of the program's own are left to the
// driver, whatever becomes of the rest; and memory that is given back is not used again too early.
#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

class OtherMemoryTest : public testing::TestWithParam<const char*> {};

TEST_P(OtherMemoryTest, AnswersAndContentsAreThoseOfTheDriver) {
  const std::vector<std::string> command = {ATP_PROGRAM_FOLDER "/other_memory",
                                            ATP_PROGRAM_FOLDER "/bump.ptx", GetParam()};
  const std::string native = RunOnTinyCard(command, false).out;
  EXPECT_NE(native.find("sum "), std::string::npos) << native;
  for (const Environment& more :
       {Environment{}, Environment{{"ATP_POLICY", "managed"}}, Environment{{"ATP_BUDGET", "6MiB"}},
        Environment{{"ATP_BUDGET", "6MiB"}, {"ATP_EXECUTOR", "threads"}}}) {
    EXPECT_EQ(RunOnTinyCard(command, true, more).out, native);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, OtherMemoryTest,
                         testing::Values("arrays", "host", "imported", "managed", "early"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace atp::preload
