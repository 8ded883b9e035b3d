// SPDX-License-Identifier: Apache-2.0
// Bodies of the look-up hooks: the driver's resolver answers; a function that is hooked gives way
// to its hook. Status and version are the driver's.
#pragma once

#include "shim/lookup_sites.h"
#include "shim/resolve.h"

namespace atp::shim {

// Inlined into the exported function, so that its return address is the caller's.
template <HookId id, typename... Status>
[[gnu::always_inline]] inline CUresult OnGetProcAddress(const char* symbol, void** function,
                                                        int version, cuuint64_t flags,
                                                        Status... status) {
  const CUresult result = Row<id>::Real()(symbol, function, version, flags, status...);
  if (result == CUDA_SUCCESS && function != nullptr && *function != nullptr) {
    if (const HookRow* row = HookOfAddress(*function)) {
      *function = row->hook;
      Count(sizeof...(Status) == 0 ? Lookup::kGetProcAddress : Lookup::kGetProcAddressV2,
            __builtin_return_address(0));
    }
  }
  return result;
}

}  // namespace atp::shim
