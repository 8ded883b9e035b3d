// SPDX-License-Identifier: Apache-2.0
// How the program finds the driver's functions, and where it gets our hooks instead: dlsym
// (dlsym_entry.S, which keeps the caller's return address, since dlsym decides RTLD_NEXT and
// RTLD_DEFAULT from it) and cuGetProcAddress. Rule for both: the real resolver answers first; only
// the hook of the very symbol whose address it gave takes its place; what is absent stays absent.
// dlvsym is not hooked.
#pragma once

#include <stdint.h>

// What an entry of dl_entries.S does next: give `value` to the caller, or jump to the real function
// with the caller's own arguments.
struct AtpDlAnswer {
  void* value;
  uint64_t answered;
};

namespace atp::shim {

// The next dlsym after ours: glibc's, or that of a preload library behind us. No hook is ever
// returned by it.
void* RealDlsym(void* handle, const char* name);
// The function of glibc's dynamic loader behind us, whatever its version.
void* NextFunction(const char* name);

}  // namespace atp::shim
