// SPDX-License-Identifier: Apache-2.0
// Memory that turns from managed into plain when a stream writes or awaits values in it: the
// program cannot tell.
#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

Finished Turned(const std::string& way, bool with, const Environment& more = {}) {
  return RunOnTinyCard({ATP_PROGRAM_FOLDER "/turned", way}, with, more);
}

class TurnedTest : public testing::TestWithParam<const char*> {};

TEST_P(TurnedTest, AnswersAreThoseOfPlainMemory) {
  const std::string native = Turned(GetParam(), false).out;
  EXPECT_GT(native.size(), 60u);
  for (const Environment& more :
       {Environment{}, Environment{{"ATP_POLICY", "managed"}}, Environment{{"ATP_BUDGET", "8MiB"}},
        Environment{{"ATP_BUDGET", "8MiB"}, {"ATP_EXECUTOR", "threads"}}}) {
    EXPECT_EQ(Turned(GetParam(), true, more).out, native);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, TurnedTest, testing::Values("use", "frees", "many", "context"),
                         [](const auto& test) { return std::string(test.param); });

TEST(Turned, ItIsSaid) {
  const Finished run = Turned("use", true, {{"ATP_LOG", "info"}});
  EXPECT_NE(run.err.find("5.0 MiB"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("is plain memory from now on"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("ATP_NATIVE"), std::string::npos) << "nothing was refused: " << run.err;
}

// Turning waits for the device, and the device may be waiting for the program: then the driver's
// refusal stands, the log says why, and the program goes on.
TEST(Turned, AProgramForWhichAStreamWaitsIsNotHeldUp) {
  EXPECT_NE(Turned("waiting", false).out.find("write: CUDA_SUCCESS"), std::string::npos);
  const Finished run = Turned("waiting", true, {{"ATP_LOG", "info"}, {"ATP_EXPORTERS", "off"}});
  EXPECT_NE(run.out.find("write: CUDA_ERROR_INVALID_VALUE\nwrite of the flag: CUDA_SUCCESS\n"
                         "end: CUDA_SUCCESS\nend: CUDA_SUCCESS\n"),
            std::string::npos)
      << run.out;
  for (const char* part : {"stays managed memory: a device is busy", "ATP_NATIVE"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " in " << run.err;
  }
}

}  // namespace
}  // namespace atp::preload
