// SPDX-License-Identifier: Apache-2.0
// What the table of hooks means to the rest of the shim: an id per row, the row's facts, the
// counters. No logic.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/cuda_abi.h"

namespace atp::shim {

enum class HookId : uint16_t {
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) symbol,
#include "shim/hooks.def"
#undef HOOK
};

inline constexpr size_t kHookCount = 0
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) +1
#include "shim/hooks.def"
#undef HOOK
    ;

// Which default stream a null stream means, and whether the driver keeps a twin for programs built
// with a default stream per thread.
enum class Twin : uint8_t { kLegacy, kPtsz, kPtds };
enum class Need : uint8_t { Required, Optional };

struct HookRow {
  const char* symbol;  // exported ABI symbol
  const char* name;    // what cuGetProcAddress is asked for
  int version;
  Twin twin;
  Need need;
  void* hook;  // our exported function
};

// Defined in exports.cc.
extern const HookRow kHooks[kHookCount];

template <HookId id>
struct Row;  // specialised in resolve.h: Function, kPerThread, Real()

}  // namespace atp::shim
