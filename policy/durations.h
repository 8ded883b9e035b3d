// SPDX-License-Identifier: Apache-2.0
// How long each launch of a period takes, from a few noisy measurements. The median of the last
// samples at each position: one disturbed measurement changes nothing, a real change shows after
// three. Fixed memory for a given length; one thread; no allocation but in Reset.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace atp::policy {

class Durations {
 public:
  static constexpr uint32_t kSamples = 5;

  void Reset(uint32_t positions);
  void Add(uint32_t position, double seconds);  // not finite or negative: ignored

  uint32_t positions() const { return static_cast<uint32_t>(rows_.size()); }
  // Median of the samples; 0 while there is none.
  double Estimate(uint32_t position) const;
  // Median distance of the samples from the estimate, as a share of it.
  double Spread(uint32_t position) const;
  // 0 without samples; n/(n+1) for n samples, less where they differ: n/(n+1) * 1/(1 + spread).
  double Confidence(uint32_t position) const;
  double Sum() const;  // of all estimates
  // |Sum - reference| / reference; above a few per cent the plan no longer fits.
  double Drift(double reference) const;

 private:
  struct Row {
    std::array<float, kSamples> seconds{};
    uint32_t added = 0;
  };
  std::vector<Row> rows_;
};

}  // namespace atp::policy
