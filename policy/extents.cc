// SPDX-License-Identifier: Apache-2.0
#include "policy/extents.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {
namespace {

constexpr double kClose = 1.0;  // bytes; sizes are whole

double Sure(size_t beyond) {
  return 1 - std::pow(0.5, static_cast<double>(std::min<size_t>(beyond, 30)) + 1);
}

}  // namespace

size_t ExtentFit::Variables() {
  return kSingles + LaunchShape::kScalars * (LaunchShape::kScalars - 1) / 2;
}

double ExtentFit::Value(const LaunchShape& shape, size_t variable) {
  if (variable < LaunchShape::kScalars) return static_cast<double>(shape.scalars[variable]);
  if (variable == LaunchShape::kScalars) return static_cast<double>(shape.threads);
  variable -= kSingles;
  for (size_t i = 0; i < LaunchShape::kScalars; ++i) {
    const size_t row = LaunchShape::kScalars - 1 - i;
    if (variable < row) {
      return static_cast<double>(shape.scalars[i]) *
             static_cast<double>(shape.scalars[i + 1 + variable]);
    }
    variable -= row;
  }
  return 0;
}

ExtentFit::Seen* ExtentFit::Find(const LaunchShape& shape) {
  const auto end = seen_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto it = std::find_if(seen_.begin(), end, [&](const Seen& s) { return s.shape == shape; });
  return it == end ? nullptr : &*it;
}

void ExtentFit::Keep(const LaunchShape& shape, Bytes bytes) {
  largest_ = std::max(largest_, bytes);
  seen_[next_] = {shape, bytes};
  next_ = (next_ + 1) % kKept;
  count_ = std::min(count_ + 1, kKept);
}

void ExtentFit::Observe(const LaunchShape& shape, Bytes bytes) {
  Seen* known = Find(shape);
  if (known == nullptr) return Keep(shape, bytes);
  if (known->bytes == bytes) {
    ++repeats_;
  } else {
    known->bytes = std::max(known->bytes, bytes);
    largest_ = std::max(largest_, bytes);
    repeats_ = 0;
  }
}

bool ExtentFit::FitFixed(Prediction* prediction) const {
  for (size_t i = 1; i < count_; ++i) {
    if (seen_[i].bytes != seen_[0].bytes) return false;
  }
  *prediction = {seen_[0].bytes, Sure(count_ - 1 + repeats_), Family::kFixed};
  return true;
}

// The line through the observations with the least and the greatest value, if all lie on it.
bool ExtentFit::FitVariable(size_t variable, const LaunchShape& shape,
                            Prediction* prediction) const {
  size_t low = 0, high = 0;
  for (size_t i = 1; i < count_; ++i) {
    const double value = Value(seen_[i].shape, variable);
    if (value < Value(seen_[low].shape, variable)) low = i;
    if (value > Value(seen_[high].shape, variable)) high = i;
  }
  const double x0 = Value(seen_[low].shape, variable), x1 = Value(seen_[high].shape, variable);
  if (!(x1 > x0)) return false;
  const double y0 = static_cast<double>(seen_[low].bytes);
  const double slope = (static_cast<double>(seen_[high].bytes) - y0) / (x1 - x0);
  if (slope < 0) return false;
  for (size_t i = 0; i < count_; ++i) {
    const double expected = y0 + slope * (Value(seen_[i].shape, variable) - x0);
    if (std::abs(expected - static_cast<double>(seen_[i].bytes)) > kClose) return false;
  }
  const double bytes = y0 + slope * (Value(shape, variable) - x0);
  if (!(bytes >= 0) || bytes > 1e18) return false;
  const Family family = variable < kSingles ? Family::kLinear : Family::kStrided;
  *prediction = {static_cast<Bytes>(std::ceil(bytes - 1e-6)), Sure(count_ - 2 + repeats_), family};
  return true;
}

ExtentFit::Prediction ExtentFit::Predict(const LaunchShape& shape) const {
  Prediction prediction;
  if (count_ == 0) return prediction;
  if (FitFixed(&prediction)) return prediction;
  for (size_t variable = 0; variable < Variables(); ++variable) {
    if (FitVariable(variable, shape, &prediction)) return prediction;
  }
  const auto end = seen_.begin() + static_cast<std::ptrdiff_t>(count_);
  const auto same =
      std::find_if(seen_.begin(), end, [&](const Seen& s) { return s.shape == shape; });
  return {same == end ? largest_ : same->bytes, 0.25, Family::kLargest};
}

}  // namespace atp::policy
