// SPDX-License-Identifier: Apache-2.0
// How much two workloads are alike, by their fingerprints. Pure functions.
#pragma once

#include <cstdint>

#include "protocol/learned.h"

namespace atp::daemon {

// 0 nothing in common, 1 the same code and the same allocations. Code counts twice: another batch
// size changes allocations alone.
double Likeness(const protocol::Fingerprint& a, const protocol::Fingerprint& b);
inline constexpr double kLeastLikeness = 0.5;

// Equal for what is kept as one workload: the same code and first allocations on the same device,
// and the same launches on memory of the same sizes.
uint64_t KeyOf(const protocol::Learned& learned);

}  // namespace atp::daemon
