// SPDX-License-Identifier: Apache-2.0
// A program ends, or its context does, while hints are in flight: it ends as it would without us.
#include <gtest/gtest.h>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

class EndsTest : public testing::TestWithParam<const char*> {};

TEST_P(EndsTest, WhileHintsAreInFlightAsItWouldWithoutUs) {
  const std::vector<std::string> command = {ATP_PROGRAM_FOLDER "/ends",
                                            ATP_PROGRAM_FOLDER "/bump.ptx", GetParam()};
  const Finished native = RunChild(command, OnTinyCard(false));
  Environment environment = OnTinyCard(true, {{"ATP_BUDGET", "14MiB"}});
  for (const char* executor : {"auto", "threads"}) {
    environment["ATP_EXECUTOR"] = executor;
    const Finished run = RunChild(command, environment);
    EXPECT_EQ(run.out, native.out) << executor;
    EXPECT_EQ(run.err, native.err) << executor;
    EXPECT_EQ(run.exit_code, native.exit_code) << executor;
    EXPECT_EQ(run.signal, native.signal) << executor;
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, EndsTest,
                         testing::Values("exit", "at-once", "killed", "thread", "destroy", "reset",
                                         "release", "frees", "stream", "captures", "free", "fork",
                                         "quick"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(Threads, OfOursHaveNamesThatSayWhatTheyDo) {
  const Finished run =
      RunChild({ATP_PROGRAM_FOLDER "/ends", ATP_PROGRAM_FOLDER "/bump.ptx", "names"},
               OnTinyCard(true, {{"ATP_BUDGET", "14MiB"}, {"ATP_EXECUTOR", "threads"}}));
  for (const char* name : {"atp-evict-0", "atp-evict-3", "atp-fetch"}) {
    EXPECT_NE(run.out.find(std::string("thread ") + name + "\n"), std::string::npos) << run.out;
  }
}

}  // namespace
}  // namespace atp::preload
