// SPDX-License-Identifier: Apache-2.0
// The two functions of NVIDIA's management library that tell how much memory is free: a program
// that asks there and not the driver must get the same numbers (memory_numbers.h). The library
// answers first; devices on which this process has not used CUDA keep its answer. Types are those
// of the NVML API reference.
#pragma once

#include <cstdint>

namespace atp::shim {

// The hook for a name of NVML, or null. `found`: the library's own function, remembered as the real
// one.
void* NvmlHookOf(const char* name, void* found);
inline bool IsNvmlName(const char* name) {
  return name != nullptr && name[0] == 'n' && name[1] == 'v' && name[2] == 'm' && name[3] == 'l';
}

}  // namespace atp::shim
