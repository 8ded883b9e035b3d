// SPDX-License-Identifier: Apache-2.0
// cuGetProcAddress and the table behind it.
#include <algorithm>
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/symbols.h"

namespace atp::sim {
namespace {

const Symbol kSymbols[] = {
#define ATP_SYMBOL(function, version, per_thread, symbol) \
  {function, version, per_thread, #symbol, reinterpret_cast<void*>(&symbol)},
#include "symbol_table.inc"
#undef ATP_SYMBOL
};

}  // namespace

int SymbolVersion(const char* symbol) {
  for (const Symbol& row : kSymbols) {
    if (std::strcmp(row.symbol, symbol) == 0) return row.version;
  }
  return 0;
}

CUresult FindSymbol(const char* function, int version, bool per_thread, int driver_version,
                    void** address, CUdriverProcAddressQueryResult* status) {
  const Symbol* best = nullptr;
  const Symbol* twin = nullptr;
  bool known = false;
  // Rows of one function lie together, sorted by name, then versions rising within plain and twin
  // rows.
  const Symbol* row = std::lower_bound(
      std::begin(kSymbols), std::end(kSymbols), function,
      [](const Symbol& a, const char* name) { return std::strcmp(a.function, name) < 0; });
  for (; row != std::end(kSymbols) && std::strcmp(row->function, function) == 0; ++row) {
    if (row->version > driver_version) continue;  // the simulated driver is older than this form
    known = true;
    if (row->version > version) continue;
    const Symbol*& slot = row->per_thread ? twin : best;
    if (!slot || row->version > slot->version) slot = row;
  }
  if (per_thread && twin) best = twin;
  *address = best ? best->address : nullptr;
  *status = best    ? CU_GET_PROC_ADDRESS_SUCCESS
            : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return known ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace atp::sim

ATP_API cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                            CUdriverProcAddressQueryResult* status) {
  ATP_CALL(kNeedsNothing, cost::kNone);
  constexpr cuuint64_t kKnown =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!symbol || !pfn || (flags & ~kKnown) || flags == kKnown) return CUDA_ERROR_INVALID_VALUE;
  CUdriverProcAddressQueryResult ignored;
  const bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  return FindSymbol(symbol, version, per_thread, call.driver.settings().driver_version, pfn,
                    status ? status : &ignored);
}

ATP_API cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  CUdriverProcAddressQueryResult status;
  const CUresult result = cuGetProcAddress_v2(symbol, pfn, version, flags, &status);
  if (result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS) return CUDA_ERROR_NOT_FOUND;
  return result;
}

// NVIDIA's runtime asks for private tables here, and with them whether the driver is NVIDIA's. It
// is not.
ATP_API cuGetExportTable(const void** table, const CUuuid* id) {
  ATP_CALL(kNeedsNothing, cost::kNone);
  (void)id;
  if (table) *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}
