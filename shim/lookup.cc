// SPDX-License-Identifier: Apache-2.0
#include "shim/lookup.h"

#include <dlfcn.h>
#include <stdint.h>

#include "shim/reentry.h"
#include "shim/resolve.h"
#include "shim/settings.h"

// The oldest version, so that the library also loads where glibc is older than the one it was built
// on.
#if defined(__x86_64__)
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
#endif

using DlsymFunction = void* (*)(void*, const char*);

// What the assembly entry does next: give `value` to the caller, or jump to the real dlsym with the
// caller's own arguments.
struct AtpDlsymAnswer {
  void* value;
  uint64_t answered;
};

extern "C" {
__attribute__((visibility("hidden"))) DlsymFunction atp_real_dlsym = nullptr;
__attribute__((visibility("hidden"))) AtpDlsymAnswer AtpRouteDlsym(void* handle, const char* name);
}

namespace atp::shim {
namespace {

// Lazily, because others call dlsym before our constructors could run. Racing threads find the same
// function.
DlsymFunction FindRealDlsym() {
  static constexpr const char* kVersions[] = {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"};
  for (const char* version : kVersions) {
    if (void* found = dlvsym(RTLD_NEXT, "dlsym", version)) {
      return reinterpret_cast<DlsymFunction>(found);
    }
  }
  return nullptr;
}

bool IsDriverName(const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

AtpDlsymAnswer RouteHookName(void* handle, const HookRow& row) {
  constexpr AtpDlsymAnswer kPass = {nullptr, 0};
  void* found = RealDlsym(handle, row.symbol);
  const bool found_us = found == row.hook;
  if (found_us) {
    // A search of the global scope meets our export first; what counts is what it would have found
    // without us.
    found = RealDlsym(RTLD_NEXT, row.symbol);
    if (found == nullptr) {
      // Perhaps a driver in the caller's local scope. If there is none at all, the symbol is absent
      // and dlerror says so already.
      if (!Resolve(nullptr, /*load=*/false) || RealAddress(row) == nullptr) return {nullptr, 1};
      dlerror();
      return {row.hook, 1};
    }
  }
  if (found == nullptr) return kPass;
  Resolve(found, /*load=*/false);
  if (Resolved() && RealAddress(row) == found) return {row.hook, 1};
  return found_us ? AtpDlsymAnswer{found, 1} : kPass;  // a second driver, or another library's hook
}

}  // namespace

void* RealDlsym(void* handle, const char* name) {
  if (atp_real_dlsym == nullptr) atp_real_dlsym = FindRealDlsym();
  return atp_real_dlsym != nullptr ? atp_real_dlsym(handle, name) : nullptr;
}

}  // namespace atp::shim

AtpDlsymAnswer AtpRouteDlsym(void* handle, const char* name) {
  using namespace atp::shim;
  constexpr AtpDlsymAnswer kPass = {nullptr, 0};
  if (atp_real_dlsym == nullptr) atp_real_dlsym = FindRealDlsym();
  if (handle == RTLD_NEXT || !IsDriverName(name)) return kPass;
  const HookRow* row = HookOfName(name);
  if (row == nullptr || t_hook_depth != 0) return kPass;
  Reentry guard;
  ReadSettings();
  if (Settings().policy == Policy::kOff) return kPass;
  return RouteHookName(handle, *row);
}
