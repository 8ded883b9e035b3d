// SPDX-License-Identifier: Apache-2.0
// The table of exported symbols with the CUDA version in which each form of a function appeared.
// Generated from the toolkit's headers (generate_symbols.py). Constant after load; any thread.
#pragma once

#include "sim/driver/cuda_api.h"

namespace atp::sim {

struct Symbol {
  const char* function;  // name without version and stream suffix, as asked of cuGetProcAddress
  int version;           // 1000 * major + 10 * minor
  bool per_thread;       // the twin for per-thread default streams
  const char* symbol;    // exported name
  void* address;
};

// CUDA version of an exported symbol, 0 when it is not in the table.
int SymbolVersion(const char* symbol);

// The newest form of `function` that is not newer than `version`; its per-thread twin if wanted and
// there.
CUresult FindSymbol(const char* function, int version, bool per_thread, int driver_version,
                    void** address, CUdriverProcAddressQueryResult* status);

}  // namespace atp::sim
