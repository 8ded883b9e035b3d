// SPDX-License-Identifier: Apache-2.0
// What the report and `atp doctor` say about a run beyond the counts of hooks: how the program
// found the driver, what stayed plain memory and why, what it was refused. Counters only; any
// thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace atp::shim {

enum class Lookup : uint8_t {
  kDlsymHandle,       // dlsym on a handle
  kDlsymDefault,      // dlsym on RTLD_DEFAULT
  kGetProcAddress,    // of the driver, version 1
  kGetProcAddressV2,  // version 2
  kSecondDriver,      // answered untouched: a function of another copy of the driver
  kRuntimeEntry,      // dlsym of the runtime's cudaGetDriverEntryPoint, whatever it is asked then
};
inline constexpr size_t kLookups = 6;
extern const char* const kLookupNames[kLookups];

enum class WhyNative : uint8_t {
  kSmall,       // small allocations cost less as plain memory
  kCapture,     // allocated while a stream was capturing
  kDevice,      // the device has no concurrent managed access, or is coherent with the host
  kRefused,     // the driver gave no managed memory
  kPool,        // a pool made for export, or of another device
  kRange,       // an address range or memory with properties that managed memory cannot have
  kExporter,    // its caller is known to export its memory (ATP_NATIVE)
  kRemembered,  // an export of its caller was refused before (ATP_EXPORTERS)
  kTurned,      // was managed until it was used as only plain memory can be (turn_plain.h)
  kSwitchedOff  // ATP_DISABLE, or after trouble of our own
};
inline constexpr size_t kWhysNative = 10;
extern const char* const kWhyNativeNames[kWhysNative];

struct Findings {
  std::atomic<uint64_t> lookups[kLookups];  // answered with a hook, but for the last two
  std::atomic<uint64_t> native_count[kWhysNative], native_bytes[kWhysNative];
  std::atomic<uint64_t> refused_exports;
  std::atomic<uint64_t> own_managed_count, own_managed_bytes;  // of the program: left to it
  std::atomic<bool> asked_before_allocating;                   // cuMemGetInfo while it held nothing
};
extern Findings g_findings;

inline void Count(Lookup lookup) {
  g_findings.lookups[static_cast<size_t>(lookup)].fetch_add(1, std::memory_order_relaxed);
}
inline void Count(WhyNative why, uint64_t bytes) {
  g_findings.native_count[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  g_findings.native_bytes[static_cast<size_t>(why)].fetch_add(bytes, std::memory_order_relaxed);
}

// Calls visit(file, symbol) for each function that a loaded object imports by name and that is
// hooked, or unseen (unseen.h), or the runtime's cudaGetDriverEntryPoint in one of its forms.
bool IsRuntimeEntry(const char* name);
void ForEachImport(void (*visit)(const char* file, const char* symbol, void* context),
                   void* context);

}  // namespace atp::shim
