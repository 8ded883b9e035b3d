// SPDX-License-Identifier: Apache-2.0
// The real driver: typed pointers to every function that the shim hooks or calls.
// `real().cuMemAlloc_v2(...)` is the driver's, `cuMemAlloc_v2` would be the program's view: one
// sees on every line which is meant.
//
// Found lazily, never in a constructor: through the handle on which the program looked the driver
// up, else the libcuda.so.1 that is already loaded, else by opening it. Resolved once and under a
// lock; afterwards the pointers never change and are read without one. A pointer may be null (older
// driver): callers of optional functions check.
#pragma once

#include <type_traits>

#include "shim/hooks.h"

namespace atp::shim {

struct SimTouch {  // a piece of 64 KiB
  uint64_t address;
  int reads, writes;
};

struct RealDriver {
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) \
  decltype(&::symbol) symbol = nullptr;
#include "shim/hooks.def"
#undef HOOK
#define CALL(symbol) decltype(&::symbol) symbol = nullptr;
#include "shim/calls.def"
#undef CALL
  // Only the simulated driver has these (sim/host_symbols.h).
  uint32_t (*atpSimLane)(uint32_t lane) = nullptr;
  uint64_t (*atpSimNow)() = nullptr;
  int (*atpSimWaitAny)(const CUevent* events, uint32_t count, uint64_t deadline_ns) = nullptr;
  uint64_t (*atpSimHostFree)() = nullptr;
  int64_t (*atpSimTouched)(SimTouch* touches, uint64_t capacity) = nullptr;
};

extern RealDriver g_real;  // written by Resolve and by tests only
inline const RealDriver& real() { return g_real; }

template <auto function_member, Twin twin>
struct RowOf {
  using Function = std::remove_cvref_t<decltype(g_real.*function_member)>;
  static constexpr bool kPerThread = twin != Twin::kLegacy;
  static Function Real() { return g_real.*function_member; }
};
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) \
  template <>                                                                \
  struct Row<HookId::symbol> : RowOf<&RealDriver::symbol, Twin::twin> {};
#include "shim/hooks.def"
#undef HOOK

// Makes sure that real() is filled. `driver_function`: an answer that the program got for a
// look-up; the object that defines it is the driver. Null: find the driver, and with `load` load it
// when it is not loaded yet. False when there is none.
bool Resolve(const void* driver_function, bool load);
bool Resolved();
const char* DriverPath();  // file of the driver that real() belongs to; "" before

// The hook that stands for this function of the driver, or null: the pointer -> symbol map.
const HookRow* HookOfAddress(const void* driver_function);
// The row with this exported name, or null.
const HookRow* HookOfName(const char* symbol);
// The driver's function behind a row, null when this driver does not have it.
const void* RealAddress(const HookRow& row);

}  // namespace atp::shim
