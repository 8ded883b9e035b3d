// SPDX-License-Identifier: Apache-2.0
// Preparing a launch: packing arguments, checking the configuration, and how many blocks a device
// holds. Under the driver's lock.
#pragma once

#include "sim/driver/module.h"
#include "sim/driver/task.h"

namespace atp::sim {

// Packs arguments from an array of pointers or from a packed buffer (`extra`).
CUresult PackArguments(const KernelInfo& info, void** kernel_params, void** extra,
                       std::vector<uint8_t>* packed);

// Makes a checked task of a launch.
CUresult MakeKernelTask(Driver& driver, Function& function, const LaunchConfig& config,
                        void** kernel_params, void** extra, KernelTask* task);

// Blocks of a kernel that one multiprocessor holds at once: threads, registers, shared memory and
// the card's own limit. 0 when not even one fits.
int BlocksPerMultiprocessor(const DeviceShape& shape, const KernelInfo& info,
                            uint64_t block_threads, uint64_t dynamic_shared_bytes);

}  // namespace atp::sim
