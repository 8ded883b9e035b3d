// SPDX-License-Identifier: Apache-2.0
// Puts a synthetic trace together: tensors, and launches whose time follows from what they touch.
// Used by the files of this folder only. One thread. Sizes in bytes, time in seconds.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "policy/synthetic/synthetic.h"

namespace atp::policy {

class SyntheticBuilder {
 public:
  explicit SyntheticBuilder(const SyntheticOptions& options)
      : options_(options), dice_(options.seed) {
    trace_.name = options.kind + "-" + std::to_string(options.seed);
    trace_.source = "synthetic: atp generate --kind " + options.kind;
    trace_.device_bytes = options.device_bytes;
    trace_.link = options.link;
  }

  uint32_t Weight(const std::string& id, Bytes bytes) { return Add(id, bytes, "weight", true); }
  uint32_t Activation(const std::string& id, Bytes bytes) {
    return Add(id, bytes, "activation", false);
  }
  uint32_t Gradient(const std::string& id, Bytes bytes) {
    return Add(id, bytes, "gradient", false);
  }
  uint32_t Add(const std::string& id, Bytes bytes, const char* kind, bool global) {
    Tensor tensor;
    tensor.id = id;
    tensor.bytes = bytes;
    tensor.kind = kind;
    tensor.global = global;
    trace_.tensors.push_back(std::move(tensor));
    return static_cast<uint32_t>(trace_.tensors.size() - 1);
  }

  // `work`: operations for each byte touched, times options.intensity; 0 = limited by device
  // bandwidth.
  void Launch(const std::string& name, std::vector<uint32_t> reads, std::vector<uint32_t> writes,
              double work, Bytes workspace = 0) {
    double bytes = 0;
    for (uint32_t t : reads) bytes += double(trace_.tensors[t].bytes);
    for (uint32_t t : writes) bytes += double(trace_.tensors[t].bytes);
    const double compute = bytes * work * options_.intensity / options_.operations_per_s;
    const double seconds = std::max(compute, bytes / options_.device_bytes_per_s);
    atp::policy::Launch launch;
    launch.name = name;
    launch.seconds = seconds + kLaunchSeconds;
    launch.reads = std::move(reads);
    launch.writes = std::move(writes);
    launch.workspace = workspace;
    trace_.launches.push_back(std::move(launch));
  }

  // In [0, 1), the same on every machine.
  double Uniform() { return double(dice_() >> 11) * 0x1.0p-53; }
  uint32_t Below(uint32_t n) { return std::min(n - 1, uint32_t(Uniform() * n)); }
  const SyntheticOptions& options() const { return options_; }
  Trace Take() { return std::move(trace_); }

 private:
  static constexpr double kLaunchSeconds = 5e-6;  // what no launch is shorter than
  const SyntheticOptions options_;
  std::mt19937_64 dice_;
  Trace trace_;
};

}  // namespace atp::policy
