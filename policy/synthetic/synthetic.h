// SPDX-License-Identifier: Apache-2.0
// Synthetic traces: one steady period of the shapes that programs have, by options and seed. For
// tests, for trying a policy on something that is not in any data set, and for `atp generate`.
// Sizes and times are made up from a few numbers (bytes over device bandwidth, operations over
// device speed): they are no measurements. Pure; the same options give the same trace on every
// machine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "policy/trace.h"

namespace atp::policy {

struct SyntheticOptions {
  std::string kind = "layers";
  uint64_t seed = 1;
  uint32_t layers = 24;
  uint32_t steps = 4;     // micro-batches, tokens or sequences in a period, where the kind has them
  uint32_t experts = 16;  // of each layer, kind "moe"
  Bytes activation = 256u << 20;  // of a layer
  Bytes weight = 64u << 20;
  double intensity = 400;  // operations for each byte that a layer touches
  // Machine: an A100-like card unless said otherwise.
  double operations_per_s = 100e12;
  double device_bytes_per_s = 1.5e12;
  Bytes device_bytes = Bytes{16} << 30;
  LinkRates link{25e9, 25e9, 0, 0};
};

struct SyntheticKind {
  std::string_view name, summary;
};
std::span<const SyntheticKind> SyntheticKinds();

// Throws nothing; an unknown kind gives a trace without launches.
Trace MakeSynthetic(const SyntheticOptions& options);

}  // namespace atp::policy
