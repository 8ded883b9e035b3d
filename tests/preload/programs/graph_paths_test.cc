// SPDX-License-Identifier: Apache-2.0
// Graphs made, changed and launched in every way do what they do without us: when they are seen as
// a whole, and when they are larger than the room and are launched node by node.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

std::string Answers(const std::string& which, bool with, const Environment& more = {}) {
  return RunOnTinyCard({ATP_PROGRAM_FOLDER "/graph_paths", ATP_PROGRAM_FOLDER "/bump.ptx", which},
                       with, more)
      .out;
}

class GraphPathsTest : public testing::TestWithParam<const char*> {};

TEST_P(GraphPathsTest, MemoryHoldsWhatItHoldsWithoutUs) {
  const std::string native = Answers(GetParam(), false);
  EXPECT_EQ(native.find("FAIL"), std::string::npos);
  const Environment whole = {{"ATP_BUDGET", "16MiB"}, {"ATP_TRACE", "/dev/null"}};
  const Environment in_parts = {{"ATP_BUDGET", "10MiB"}};
  const Environment not_seen = {{"ATP_BUDGET", "10MiB"}, {"ATP_DISABLE", "graphs"}};
  for (const Environment& more : {Environment{}, whole, in_parts, not_seen}) {
    EXPECT_EQ(Answers(GetParam(), true, more), native);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, GraphPathsTest,
                         testing::Values("kinds", "order", "changes", "updates", "children",
                                         "pageable", "recorded", "packed"),
                         [](const auto& test) { return std::string(test.param); });

// The simulated machine counts what reaches it: no graph does when each is launched in parts.
TEST(GraphParts, ArgumentsInOneBufferAreReadLikeAnArrayOfThem) {
  for (const char* which : {"kinds", "packed"}) {
    const std::string stats = testing::TempDir() + "graph_parts_" + which + ".json";
    Answers(which, true, {{"ATP_BUDGET", "10MiB"}, {"ATP_SIM_STATS", stats}});
    std::stringstream text;
    text << std::ifstream(stats).rdbuf();
    EXPECT_NE(text.str().find("\"cuGraphInstantiate"), std::string::npos) << which;
    EXPECT_EQ(text.str().find("\"cuGraphLaunch"), std::string::npos) << which;
  }
}

}  // namespace
}  // namespace atp::preload
