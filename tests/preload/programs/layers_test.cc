// SPDX-License-Identifier: Apache-2.0
// A program twice as large as its card, whatever way it gets its memory and launches its work: the
// results are those of a big card, and from the plan on it is faster than plain managed memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

struct Outcome {
  Finished finished;
  std::string results;  // everything printed, but for the times
  double best_ms = 1e9;
};

constexpr const char* kSmall = "12MiB";
constexpr const char* kBig = "256MiB";

Outcome Launch(const std::string& memory, const std::string& launch, const char* card,
               Environment environment) {
  environment["LD_LIBRARY_PATH"] = ATP_SIM_FOLDER;
  environment["ATP_SIM_GPU"] = "tiny";
  environment["ATP_SIM_MEMORY"] = card;
  environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
  Outcome outcome;
  outcome.finished = RunChild(
      {ATP_PROGRAM_FOLDER "/layers", ATP_PROGRAM_FOLDER "/bump.ptx", memory, launch}, environment);
  static const std::regex time("ms ([0-9.]+)\n");
  const std::string& out = outcome.finished.out;
  for (std::sregex_iterator it(out.begin(), out.end(), time), end; it != end; ++it) {
    outcome.best_ms = std::min(outcome.best_ms, std::stod((*it)[1]));
  }
  outcome.results = std::regex_replace(out, time, "");
  return outcome;
}

const Environment kOff = {{"ATP_POLICY", "off"}};

class Layers : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  const char* memory() const { return std::get<0>(GetParam()); }
  const char* launch() const { return std::get<1>(GetParam()); }
};

TEST_P(Layers, RunAtTwiceTheCardWithTheResultsOfABigOne) {
  const Outcome big = Launch(memory(), launch(), kBig, kOff);
  ASSERT_EQ(big.finished.exit_code, 0) << big.finished.out;
  ASSERT_NE(big.results.find("sum"), std::string::npos);
  EXPECT_EQ(Launch(memory(), launch(), kSmall, kOff).finished.exit_code, 2) << "it fits by itself";
  for (const Environment& more : {Environment{}, Environment{{"ATP_EXECUTOR", "threads"}}}) {
    const Outcome run = Launch(memory(), launch(), kSmall, more);
    EXPECT_EQ(run.results, big.results) << run.finished.err;
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Layers,
                         testing::Combine(testing::Values("plain", "ranges", "range", "async",
                                                          "pool"),
                                          testing::Values("kernels")),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param)) + "_" +
                                  std::get<1>(test.param);
                         });
INSTANTIATE_TEST_SUITE_P(Calls, Layers,
                         testing::Combine(testing::Values("plain"),
                                          testing::Values("ex", "packed", "library")),
                         [](const auto& test) { return std::string(std::get<1>(test.param)); });
INSTANTIATE_TEST_SUITE_P(Graphs, Layers,
                         testing::Combine(testing::Values("plain"),
                                          testing::Values("captured", "nodes", "child", "updated",
                                                          "host")),
                         [](const auto& test) { return std::string(std::get<1>(test.param)); });

// What is seen can be planned, whatever the call by which it was launched.
TEST(LayersByOtherCalls, AreAsFastAsByTheUsualOne) {
  const double kernels = Launch("plain", "kernels", kSmall, {}).best_ms;
  EXPECT_LT(kernels, Launch("plain", "kernels", kSmall, {{"ATP_POLICY", "managed"}}).best_ms);
  for (const char* call : {"ex", "packed", "library"}) {
    EXPECT_LT(Launch("plain", call, kSmall, {}).best_ms, kernels * 1.01) << call;
  }
}

// What is larger than the card must be launched in parts to move in time.
TEST(LayersOfAGraph, LaunchedNodeByNodeAreAsFastAsKernels) {
  const double kernels = Launch("plain", "kernels", kSmall, {}).best_ms;
  const double managed = Launch("plain", "captured", kSmall, {{"ATP_POLICY", "managed"}}).best_ms;
  const double graph = Launch("plain", "captured", kSmall, {}).best_ms;
  EXPECT_LT(graph, managed);
  EXPECT_LT(graph, kernels * 1.05);
}

TEST(LayersOfAGraph, ThatCannotBeLaunchedInPartsAreLaunchedAsAWholeAndThatIsSaid) {
  const Outcome run = Launch("plain", "host", kSmall, {});
  EXPECT_NE(run.finished.err.find("nodes other than kernels, copies and sets"), std::string::npos)
      << run.finished.err;
}

}  // namespace
}  // namespace atp::preload
