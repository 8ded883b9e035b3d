// SPDX-License-Identifier: Apache-2.0
#include "shim/resolve.h"

#include <dlfcn.h>
#include <string.h>

#include <array>
#include <atomic>
#include <mutex>
#include <string_view>

#include "shim/lookup.h"
#include "shim/shimlog.h"

namespace atp::shim {

constinit RealDriver g_real;

namespace {

std::mutex resolve_mutex;
std::atomic<bool> resolved{false};
char driver_path[1024] = "";

constexpr std::string_view kSymbols[kHookCount] = {
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) #symbol,
#include "shim/hooks.def"
#undef HOOK
};

// Open addressing with a power of two of slots, at most a quarter full; -1 = empty.
constexpr size_t kSlots = 1024;
static_assert(kHookCount * 4 <= kSlots);

constexpr size_t HashName(std::string_view name) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash ^ (hash >> 32);
}

constexpr std::array<int16_t, kSlots> MakeNameTable() {
  std::array<int16_t, kSlots> table{};
  table.fill(-1);
  for (size_t row = 0; row < kHookCount; ++row) {
    size_t slot = HashName(kSymbols[row]) % kSlots;
    while (table[slot] >= 0) slot = (slot + 1) % kSlots;
    table[slot] = static_cast<int16_t>(row);
  }
  return table;
}
constexpr std::array<int16_t, kSlots> kNameTable = MakeNameTable();

// driver function -> row. Two entries a row at most: the exported symbol, and what cuGetProcAddress
// gives for it where that differs.
struct AddressSlot {
  const void* function;
  const HookRow* row;
};
AddressSlot address_table[kSlots];
static_assert(kHookCount * 3 <= kSlots);

size_t AddressHash(const void* function) {
  return (reinterpret_cast<uintptr_t>(function) * 0x9E3779B97F4A7C15u) >> 55;  // top 9 bits: kSlots
}

void InsertAddress(const void* function, const HookRow* row) {
  size_t slot = AddressHash(function);
  while (address_table[slot].function != nullptr) {
    if (address_table[slot].function == function)
      return;  // aliases: the first exported name stands
    slot = (slot + 1) % kSlots;
  }
  address_table[slot] = {function, row};
}

void* HandleOf(const void* driver_function) {
  Dl_info info;
  if (dladdr(driver_function, &info) == 0 || info.dli_fname == nullptr) return nullptr;
  const char* slash = strrchr(info.dli_fname, '/');
  const char* file = slash != nullptr ? slash + 1 : info.dli_fname;
  // Another preload library may export the same names; only the driver itself is taken for the
  // driver.
  if (strncmp(file, "libcuda.so", 10) != 0) return nullptr;
  return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
}

void* OpenDriver(const void* driver_function, bool load) {
  if (driver_function != nullptr) return HandleOf(driver_function);
  void* handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr && load) handle = dlopen("libcuda.so.1", RTLD_LAZY);
  return handle;
}

template <typename F>
void Fill(F* slot, void* handle, const char* symbol, const void* own) {
  void* found = RealDlsym(handle, symbol);
  // A driver that was linked without -Bsymbolic may hand back our own export: calling that would
  // never end.
  if (found == own) found = nullptr;
  *slot = reinterpret_cast<F>(found);
}

// What the driver's own resolver answers for each row, in case it is not the exported address.
void AddResolverAnswers() {
  for (const HookRow& row : kHooks) {
    void* function = nullptr;
    const cuuint64_t flags = row.twin == Twin::kLegacy
                                 ? CU_GET_PROC_ADDRESS_DEFAULT
                                 : CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUresult result = CUDA_ERROR_NOT_FOUND;
    if (g_real.cuGetProcAddress_v2 != nullptr) {
      CUdriverProcAddressQueryResult status;
      result = g_real.cuGetProcAddress_v2(row.name, &function, row.version, flags, &status);
    } else if (g_real.cuGetProcAddress != nullptr) {
      result = g_real.cuGetProcAddress(row.name, &function, row.version, flags);
    }
    if (result == CUDA_SUCCESS && function != nullptr) InsertAddress(function, &row);
  }
}

void RememberPath() {
  Dl_info info;
  const void* any = reinterpret_cast<const void*>(g_real.cuMemAlloc_v2);
  if (any != nullptr && dladdr(any, &info) != 0 && info.dli_fname != nullptr) {
    strncpy(driver_path, info.dli_fname, sizeof driver_path - 1);
  }
}

void FillAll(void* handle) {
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) \
  Fill(&g_real.symbol, handle, #symbol, kHooks[static_cast<size_t>(HookId::symbol)].hook);
#include "shim/hooks.def"
#undef HOOK
#define CALL(symbol) Fill(&g_real.symbol, handle, #symbol, nullptr);
#include "shim/calls.def"
#undef CALL
  Fill(&g_real.atpSimLane, handle, "atpSimLane", nullptr);
  Fill(&g_real.atpSimNow, handle, "atpSimNow", nullptr);
  Fill(&g_real.atpSimHostFree, handle, "atpSimHostFree", nullptr);
  Fill(&g_real.atpSimTouched, handle, "atpSimTouched", nullptr);
  Fill(&g_real.atpSimWaitAny, handle, "atpSimWaitAny", nullptr);
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments) \
  if (g_real.symbol != nullptr) {                                            \
    InsertAddress(reinterpret_cast<const void*>(g_real.symbol),              \
                  &kHooks[static_cast<size_t>(HookId::symbol)]);             \
  }
#include "shim/hooks.def"
#undef HOOK
}

}  // namespace

bool Resolve(const void* driver_function, bool load) {
  if (Resolved()) return true;
  std::lock_guard lock(resolve_mutex);
  if (Resolved()) return true;
  void* handle = OpenDriver(driver_function, load);
  if (handle == nullptr) return false;
  FillAll(handle);
  AddResolverAnswers();
  RememberPath();
  dlerror();  // absent optional functions left a message that is not the program's
  resolved.store(true, std::memory_order_release);
  return true;
}

bool Resolved() { return resolved.load(std::memory_order_acquire); }

const char* DriverPath() { return driver_path; }

const HookRow* HookOfAddress(const void* driver_function) {
  for (size_t slot = AddressHash(driver_function); address_table[slot].function != nullptr;
       slot = (slot + 1) % kSlots) {
    if (address_table[slot].function == driver_function) return address_table[slot].row;
  }
  return nullptr;
}

const HookRow* HookOfName(const char* symbol) {
  const std::string_view name(symbol);
  for (size_t slot = HashName(name) % kSlots; kNameTable[slot] >= 0; slot = (slot + 1) % kSlots) {
    const size_t row = static_cast<size_t>(kNameTable[slot]);
    if (kSymbols[row] == name) return &kHooks[row];
  }
  return nullptr;
}

const void* RealAddress(const HookRow& row) {
  static_assert(offsetof(RealDriver, cuGetProcAddress) == 0);  // rows come first, in their order
  const void* function;
  memcpy(&function, reinterpret_cast<const char*>(&g_real) + (&row - kHooks) * sizeof(void*),
         sizeof function);
  return function;
}

}  // namespace atp::shim
