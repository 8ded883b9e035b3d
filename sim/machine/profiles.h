// SPDX-License-Identifier: Apache-2.0
// The cards that can be simulated: what they report about themselves (NVIDIA's published figures).
#pragma once

#include "sim/machine/costs.h"
#include "sim/machine/machine.h"

namespace atp::sim {

// `profile` is an index of costs.h. total_bytes = the card's memory less Costs::reserved.
DeviceShape ProfileShape(int profile, const Costs& costs);

}  // namespace atp::sim
