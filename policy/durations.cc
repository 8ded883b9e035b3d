// SPDX-License-Identifier: Apache-2.0
#include "policy/durations.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {
namespace {

template <typename Values>
double Median(Values values, uint32_t count) {
  if (count == 0) return 0;
  const auto middle = values.begin() + (count - 1) / 2;
  std::nth_element(values.begin(), middle, values.begin() + count);
  if (count % 2 == 1) return *middle;
  return (*middle + *std::min_element(middle + 1, values.begin() + count)) / 2.0;
}

}  // namespace

void Durations::Reset(uint32_t positions) { rows_.assign(positions, Row()); }

void Durations::Add(uint32_t position, double seconds) {
  if (position >= rows_.size() || !std::isfinite(seconds) || seconds < 0) return;
  Row& row = rows_[position];
  row.seconds[row.added++ % kSamples] = static_cast<float>(seconds);
}

double Durations::Estimate(uint32_t position) const {
  if (position >= rows_.size()) return 0;
  return Median(rows_[position].seconds, std::min(rows_[position].added, kSamples));
}

double Durations::Spread(uint32_t position) const {
  const double estimate = Estimate(position);
  if (estimate <= 0) return 0;
  auto distances = rows_[position].seconds;
  for (float& value : distances) value = static_cast<float>(std::abs(value - estimate));
  return Median(distances, std::min(rows_[position].added, kSamples)) / estimate;
}

double Durations::Confidence(uint32_t position) const {
  if (position >= rows_.size()) return 0;
  const double samples = std::min(rows_[position].added, kSamples);
  return samples / (samples + 1) / (1 + Spread(position));
}

double Durations::Sum() const {
  double sum = 0;
  for (uint32_t p = 0; p < positions(); ++p) sum += Estimate(p);
  return sum;
}

double Durations::Drift(double reference) const {
  return reference > 0 ? std::abs(Sum() - reference) / reference : 0;
}

}  // namespace atp::policy
