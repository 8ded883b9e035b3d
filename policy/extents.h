// SPDX-License-Identifier: Apache-2.0
// How far a kernel reaches from a pointer argument, learnt from launches. One ExtentFit for each
// argument of each kernel; it starts tight and grows on evidence: an extent that was too small
// costs a page fault, one that is too large costs link time in every period.
//
// Families, the simplest that explains every observation wins (the templates that MSched reports
// for more than 99 % of kernels):
//   fixed    bytes = b
//   linear   bytes = a * x + b, with x a scalar argument or the number of threads in the grid
//   strided  bytes = a * x * y + b, with x and y two scalar arguments (rows and pitch)
// Fixed memory; one thread; no allocation after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "policy/trace.h"

namespace atp::policy {

// What a launch shows of itself: its integer arguments in order, and blocks times threads.
struct LaunchShape {
  static constexpr size_t kScalars = 8;
  std::array<uint64_t, kScalars> scalars{};  // those beyond are not looked at
  uint8_t scalar_count = 0;
  uint64_t threads = 0;
  bool operator==(const LaunchShape&) const = default;
};

class ExtentFit {
 public:
  enum class Family : uint8_t { kUnknown, kFixed, kLinear, kStrided, kLargest };
  struct Prediction {
    Bytes bytes = 0;
    // 1 - 2^-(c+1), with c the observations beyond those that the fit needs; a quarter where
    // nothing fits and the largest extent so far stands in; 0 without any observation.
    double confidence = 0;
    Family family = Family::kUnknown;
  };

  // The launch reached `bytes` from the pointer, as far as could be seen. More than before for the
  // same shape is evidence that it reaches farther: it grows, and is unsure again.
  void Observe(const LaunchShape& shape, Bytes bytes);
  Prediction Predict(const LaunchShape& shape) const;

 private:
  static constexpr size_t kKept = 12;
  // Candidates for x: each scalar, the threads; then pairs of scalars.
  static constexpr size_t kSingles = LaunchShape::kScalars + 1;
  struct Seen {
    LaunchShape shape;
    Bytes bytes = 0;
  };

  static double Value(const LaunchShape& shape, size_t variable);
  static size_t Variables();
  bool FitFixed(Prediction* prediction) const;
  bool FitVariable(size_t variable, const LaunchShape& shape, Prediction* prediction) const;
  Seen* Find(const LaunchShape& shape);
  void Keep(const LaunchShape& shape, Bytes bytes);

  std::array<Seen, kKept> seen_{};
  size_t count_ = 0, next_ = 0;
  uint32_t repeats_ = 0;  // observations that confirmed a known one
  Bytes largest_ = 0;
};

}  // namespace atp::policy
