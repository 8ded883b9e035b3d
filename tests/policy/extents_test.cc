// SPDX-License-Identifier: Apache-2.0
#include "policy/extents.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace atp::policy {
namespace {

LaunchShape Shape(std::initializer_list<uint64_t> scalars, uint64_t threads = 1) {
  LaunchShape shape;
  for (uint64_t s : scalars) shape.scalars[shape.scalar_count++] = s;
  shape.threads = threads;
  return shape;
}

TEST(ExtentFit, KnowsNothingAtFirst) {
  const ExtentFit fit;
  EXPECT_EQ(fit.Predict(Shape({1})).bytes, 0u);
  EXPECT_EQ(fit.Predict(Shape({1})).confidence, 0);
}

TEST(ExtentFit, TakesAFixedExtentUntilShownOtherwise) {
  ExtentFit fit;
  fit.Observe(Shape({10}), 4096);
  EXPECT_EQ(fit.Predict(Shape({99})).bytes, 4096u);
  const double once = fit.Predict(Shape({99})).confidence;
  fit.Observe(Shape({20}), 4096);
  EXPECT_GT(fit.Predict(Shape({99})).confidence, once);
  EXPECT_EQ(fit.Predict(Shape({99})).family, ExtentFit::Family::kFixed);
}

TEST(ExtentFit, FindsTheScalarThatItIsLinearIn) {
  ExtentFit fit;
  fit.Observe(Shape({7, 100, 3}), 400 + 16);
  fit.Observe(Shape({9, 250, 3}), 1000 + 16);
  fit.Observe(Shape({8, 50, 3}), 200 + 16);
  const auto prediction = fit.Predict(Shape({1, 1000, 3}));
  EXPECT_EQ(prediction.bytes, 4016u);
  EXPECT_EQ(prediction.family, ExtentFit::Family::kLinear);
  EXPECT_GE(prediction.confidence, 0.75);
}

TEST(ExtentFit, FindsTheGrid) {
  ExtentFit fit;
  fit.Observe(Shape({5}, 1024), 4096);
  fit.Observe(Shape({5}, 2048), 8192);
  EXPECT_EQ(fit.Predict(Shape({5}, 4096)).bytes, 16384u);
}

TEST(ExtentFit, FindsRowsTimesPitch) {
  ExtentFit fit;
  fit.Observe(Shape({10, 64}), 10 * 64 * 4);
  fit.Observe(Shape({20, 48}), 20 * 48 * 4);
  fit.Observe(Shape({5, 100}), 5 * 100 * 4);
  const auto prediction = fit.Predict(Shape({7, 7}));
  EXPECT_EQ(prediction.bytes, 7u * 7 * 4);
  EXPECT_EQ(prediction.family, ExtentFit::Family::kStrided);
}

TEST(ExtentFit, FallsBackToTheLargestWithLittleConfidence) {
  ExtentFit fit;
  fit.Observe(Shape({1}), 1000);
  fit.Observe(Shape({2}), 700);
  fit.Observe(Shape({3}), 12345);
  const auto prediction = fit.Predict(Shape({4}));
  EXPECT_EQ(prediction.bytes, 12345u);
  EXPECT_EQ(prediction.family, ExtentFit::Family::kLargest);
  EXPECT_LT(prediction.confidence, 0.5);
  EXPECT_EQ(fit.Predict(Shape({2})).bytes, 700u);  // the very same launch
}

TEST(ExtentFit, GrowsOnEvidenceAndIsUnsureAgain) {
  ExtentFit fit;
  for (int i = 0; i < 4; ++i) fit.Observe(Shape({1}), 1000);
  const double sure = fit.Predict(Shape({1})).confidence;
  fit.Observe(Shape({1}), 3000);
  EXPECT_EQ(fit.Predict(Shape({1})).bytes, 3000u);
  EXPECT_LT(fit.Predict(Shape({1})).confidence, sure);
  fit.Observe(Shape({1}), 2000);  // says nothing new
  EXPECT_EQ(fit.Predict(Shape({1})).bytes, 3000u);
}

TEST(ExtentFit, RemembersABoundedNumberOfLaunches) {
  ExtentFit fit;
  for (uint64_t i = 1; i <= 1000; ++i) fit.Observe(Shape({i}), i * 8);
  EXPECT_EQ(fit.Predict(Shape({5000})).bytes, 40000u);
}

}  // namespace
}  // namespace atp::policy
