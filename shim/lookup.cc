// SPDX-License-Identifier: Apache-2.0
#include "shim/lookup.h"

#include <dlfcn.h>

#include <initializer_list>

#include "shim/findings.h"
#include "shim/lookup_sites.h"
#include "shim/nvml.h"
#include "shim/reentry.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/unseen.h"

// The oldest version, so that the library also loads where glibc is older than the one it was built
// on.
#if defined(__x86_64__)
__asm__(".symver dlvsym, dlvsym@GLIBC_2.2.5");
#endif

using DlsymFunction = void* (*)(void*, const char*);

extern "C" {
__attribute__((visibility("hidden"))) DlsymFunction atp_real_dlsym = nullptr;
__attribute__((visibility("hidden"))) AtpDlAnswer AtpRouteDlsym(void* handle, const char* name,
                                                                const void* caller);
}

namespace atp::shim {
namespace {

bool IsDriverName(const char* name) {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

AtpDlAnswer RouteHookName(void* handle, const HookRow& row, const void* caller) {
  constexpr AtpDlAnswer kPass = {nullptr, 0};
  void* found = RealDlsym(handle, row.symbol);
  const bool found_us = found == row.hook;
  const bool off = Settings().policy == Policy::kOff;
  if (found_us) {
    // A search of the global scope meets our export first; what counts is what it would have found
    // without us.
    found = RealDlsym(RTLD_NEXT, row.symbol);
    if (found == nullptr) {
      // Perhaps a driver in the caller's local scope, which only the caller could search.
      const bool loaded = !off && Resolve(nullptr, /*load=*/false) && RealAddress(row) != nullptr;
      if (!loaded) RealDlsym(RTLD_NEXT, row.symbol);  // once more, for dlerror
      if (loaded) dlerror();                          // and here it must be silent
      if (loaded) Count(Lookup::kDlsymDefault, caller);
      return {loaded ? row.hook : nullptr, 1};
    }
  }
  if (found == nullptr) return kPass;
  if (!off) Resolve(found, /*load=*/false);
  if (!off && Resolved() && RealAddress(row) == found) {
    Count(handle == RTLD_DEFAULT ? Lookup::kDlsymDefault : Lookup::kDlsymHandle, caller);
    return {row.hook, 1};
  }
  if (!off && RealAddress(row) != nullptr) Count(Lookup::kSecondDriver, caller);
  return found_us ? AtpDlAnswer{found, 1} : kPass;  // a second driver, or another library's hook
}

// The library answers first; where it has the function, our hook takes its place.
AtpDlAnswer RouteNvmlName(void* handle, const char* name) {
  constexpr AtpDlAnswer kPass = {nullptr, 0};
  void* hook = NvmlHookOf(name, nullptr);
  if (hook == nullptr || t_hook_depth != 0) return kPass;
  Reentry guard;
  ReadSettings();
  if (Settings().policy == Policy::kOff) return kPass;
  void* found = RealDlsym(handle, name);
  if (found == hook) found = RealDlsym(RTLD_NEXT, name);  // our export came first
  if (found == nullptr) return kPass;
  return {NvmlHookOf(name, found), 1};
}

}  // namespace

void* NextFunction(const char* name) {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (void* found = dlvsym(RTLD_NEXT, name, version)) return found;
  }
  return nullptr;
}

// Lazily, because others call dlsym before our constructors could run. Racing threads find the same
// function.
void* RealDlsym(void* handle, const char* name) {
  if (atp_real_dlsym == nullptr)
    atp_real_dlsym = reinterpret_cast<DlsymFunction>(NextFunction("dlsym"));
  return atp_real_dlsym != nullptr ? atp_real_dlsym(handle, name) : nullptr;
}

}  // namespace atp::shim

AtpDlAnswer AtpRouteDlsym(void* handle, const char* name, const void* caller) {
  using namespace atp::shim;
  constexpr AtpDlAnswer kPass = {nullptr, 0};
  if (atp_real_dlsym == nullptr)
    atp_real_dlsym = reinterpret_cast<DlsymFunction>(NextFunction("dlsym"));
  if (handle == RTLD_NEXT) return kPass;
  if (IsNvmlName(name)) return RouteNvmlName(handle, name);
  if (name != nullptr && IsRuntimeEntry(name)) Count(Lookup::kRuntimeEntry, caller);
  if (!IsDriverName(name)) return kPass;
  if (t_hook_depth != 0) return kPass;
  const HookRow* row = HookOfName(name);
  if (row == nullptr) {
    NoteUnseenLookup(name);
    return kPass;
  }
  Reentry guard;
  ReadSettings();
  return RouteHookName(handle, *row, caller);
}
