// SPDX-License-Identifier: Apache-2.0
// One network through the allocators that frameworks bring: tensors that come and go inside large
// allocations, in the driver's pool, in mapped ranges, or by plain calls. Whatever it is, the loop
// sees them, and results are those of a big card.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/preload/closed_loop/launch.h"

namespace atp::preload {
namespace {

class Allocators : public testing::TestWithParam<const char*> {
 protected:
  // 73 MiB in use at most, in tensors of 64 KiB to 4 MiB.
  static Outcome Train(const char* allocator, const char* memory, Environment environment) {
    return Launch({ATP_EXAMPLES "/train_residual", "--blocks", "3", "--width", "512", "--batch",
                   "32", "--iterations", "8", "--arena", "90", "--allocator", allocator},
                  memory, std::move(environment));
  }
};

TEST_P(Allocators, TensorsAreSeenAndMovedAndResultsStay) {
  const Outcome big = Train("plain", "1GiB", {{"ATP_POLICY", "off"}});
  ASSERT_EQ(big.finished.exit_code, 0) << big.finished.err;
  const Outcome managed = Train(GetParam(), "52MiB", {{"ATP_POLICY", "managed"}});
  const Outcome learned = Train(GetParam(), "52MiB", {});
  EXPECT_EQ(managed.results, big.results);
  EXPECT_EQ(learned.results, big.results) << learned.finished.err;
  EXPECT_EQ(learned.stats["discard_violations"], 0);
  ASSERT_EQ(learned.iteration_ms.size(), 8u);
  EXPECT_LT(learned.iteration_ms.back(), 0.5 * managed.iteration_ms.back());
}

TEST_P(Allocators, WhatPlansTakeLaunchesToTouchIsHeldAgainstTheTruth) {
  const std::string file = testing::TempDir() + "access." + std::to_string(getpid()) + ".json";
  const Outcome run = Train(GetParam(), "52MiB", {{"ATP_ACCESS_STATS", file}});
  ASSERT_EQ(run.finished.exit_code, 0) << run.finished.err;
  nlohmann::json access;
  std::ifstream(file) >> access;
  unlink(file.c_str());
  EXPECT_EQ(access["known"], true);
  const nlohmann::json& all = access["all"];
  EXPECT_GT(all["launches"], 50);
  EXPECT_EQ(all["predicted_bytes"].get<uint64_t>() - all["wrong_bytes"].get<uint64_t>(),
            all["touched_bytes"].get<uint64_t>() - all["missed_bytes"].get<uint64_t>());
  EXPECT_LE(all["missed_bytes"].get<double>(), 0.02 * all["touched_bytes"].get<double>());
  uint64_t launches = 0;
  for (const auto& kernel : access["kernels"]) launches += kernel["launches"].get<uint64_t>();
  EXPECT_EQ(launches, all["launches"].get<uint64_t>());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Allocators,
                         testing::Values("plain", "async", "caching", "expandable", "arena"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace atp::preload
