// SPDX-License-Identifier: Apache-2.0
// How the simulated cards are told apart, by the driver and by the management library: UUIDs that
// say what they are, and places on the PCI bus. Pure.
#pragma once

#include <string>

#include "sim/driver/cuda_api.h"

namespace atp::sim {

inline constexpr int kFirstBus = 0x17;  // PCI bus of device 0; the others follow

CUuuid CardUuid(int index);
std::string UuidText(const CUuuid& uuid);  // "GPU-..."
std::string PciText(int index);            // "0000:17:00.0"

}  // namespace atp::sim
