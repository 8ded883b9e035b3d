// SPDX-License-Identifier: Apache-2.0
// How far the device's results are from a reference on the CPU.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace example {

// |a - b| / |b| over all values of a tensor; |a| where the reference is zero.
inline double RelativeError(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double(a[i]) - b[i]) * (double(a[i]) - b[i]);
    size += double(b[i]) * b[i];
  }
  return size > 0 ? std::sqrt(difference / size) : std::sqrt(difference);
}

// Keeps the greatest deviation and where it was.
class WorstError {
 public:
  explicit WorstError(double allowed) : allowed_(allowed) {}

  void Note(const std::string& what, double error) {
    if (error > worst_ || std::isnan(error)) {
      worst_ = std::isnan(error) ? INFINITY : error;
      where_ = what;
    }
  }
  bool Report() const {
    const std::string where = where_.empty() ? "" : " (" + where_ + ")";
    std::printf("check: greatest relative error %.2e%s, allowed %.0e\n", worst_, where.c_str(),
                allowed_);
    return worst_ < allowed_;
  }

 private:
  const double allowed_;
  double worst_ = 0;
  std::string where_ = "none";  // empty: nothing to tell apart
};

}  // namespace example
