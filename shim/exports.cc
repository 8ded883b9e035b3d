// SPDX-License-Identifier: Apache-2.0
// Expands hooks.def into the exported functions. No logic: enter, go to the body or to the driver,
// leave.
#include <string_view>

#include "shim/counters.h"
#include "shim/lifecycle.h"
#include "shim/on_alloc.h"
#include "shim/on_capture.h"
#include "shim/on_context.h"
#include "shim/on_copy.h"
#include "shim/on_graph.h"
#include "shim/on_launch.h"
#include "shim/on_lookup.h"
#include "shim/on_module.h"
#include "shim/on_query.h"
#include "shim/on_set.h"
#include "shim/on_tensor_map.h"
#include "shim/on_vmm.h"
#include "shim/on_wait.h"
#include "shim/owing.h"
#include "shim/reentry.h"

namespace atp::shim {
namespace {

// True when the body serves this call; false: straight to the driver.
inline bool Enter(HookId id, const Reentry& guard) {
  if (!Active() && !EnsureStarted()) [[unlikely]]
    return false;
  if (!guard.outermost()) [[unlikely]]
    return false;
  CountHook(id);
  return true;
}

// What has been dropped is made again before any call but launches, which look for themselves
// whether they need it, and know their stream. Constant: launches do not pay for the question.
constexpr bool PaysFirst(std::string_view body) {
  for (const std::string_view looks :
       {"OnLaunchKernel", "OnLaunchCooperativeKernel", "OnLaunchKernelEx", "OnGraphLaunch"}) {
    if (body == looks) return false;
  }
  return true;
}
// The memory goes, whatever the driver says of what it held.
constexpr bool EndsMemory(std::string_view body) {
  return body == "OnContextDestroy" || body == "OnPrimaryReset" || body == "OnPrimaryRelease";
}

}  // namespace

#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) \
  {#symbol, #name, version, Twin::twin, Need::need, reinterpret_cast<void*>(&::symbol)},
const HookRow kHooks[kHookCount] = {
#include "shim/hooks.def"
};
#undef HOOK

}  // namespace atp::shim

// A program that links a symbol which this driver does not have meets ours instead of a link error:
// it gets "not found".
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments)             \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI symbol parameters { \
    using namespace atp::shim;                                                           \
    const Reentry guard(__builtin_return_address(0));                                    \
    const bool serve = Enter(HookId::symbol, guard);                                     \
    const auto driver = Row<HookId::symbol>::Real();                                     \
    if (driver == nullptr) [[unlikely]]                                                  \
      return CUDA_ERROR_NOT_FOUND;                                                       \
    if (!serve) [[unlikely]]                                                             \
      return driver arguments;                                                           \
    if constexpr (PaysFirst(#body)) {                                                    \
      const CUresult refused = Owing() ? LoopPay(nullptr) : CUDA_SUCCESS;                \
      if (refused != CUDA_SUCCESS && !EndsMemory(#body)) return refused;                 \
    }                                                                                    \
    return body<HookId::symbol> arguments;                                               \
  }
#include "shim/hooks.def"
#undef HOOK
