// SPDX-License-Identifier: Apache-2.0
// Plain device memory in another process. A handle says where the bytes lie in the exporter's
// memory file, which the importer opens through /proc and maps. Bytes are shared, virtual time is
// not: each process has a machine of its own. Managed memory is refused, as a real driver does.
#include <unistd.h>

#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/process_file.h"

namespace atp::sim {
namespace {

struct SharedPiece {  // what a CUipcMemHandle holds
  ProcessFile file;
  uint64_t offset = 0, bytes = 0;
};
static_assert(sizeof(SharedPiece) <= sizeof(CUipcMemHandle));

// Memory that this process has opened, with how often.
std::map<uint64_t, std::pair<SharedPiece, unsigned>>& Opened() {  // under the driver's lock
  static auto* const opened = new std::map<uint64_t, std::pair<SharedPiece, unsigned>>;
  return *opened;
}

CUresult Open(Call& call, const SharedPiece& piece, CUdeviceptr* out) {
  for (auto& [address, opened] : Opened()) {
    const Allocation* known = call.driver.memory().Find(address);
    const bool same = known && known->kind == MemoryKind::kImported &&
                      known->context == call.context &&
                      std::memcmp(&opened.first, &piece, sizeof piece) == 0;
    if (!same) continue;
    ++opened.second;
    *out = address;
    return CUDA_SUCCESS;
  }
  const int file = piece.file.Open();
  if (file < 0) return CUDA_ERROR_INVALID_VALUE;
  const Allocation* imported =
      call.driver.memory().Import(call.context, file, piece.offset, piece.bytes);
  close(file);
  if (!imported) return CUDA_ERROR_MAP_FAILED;
  Opened()[imported->begin] = {piece, 1};
  *out = imported->begin;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr address) {
  ATP_CALL(kNeedsContext, cost::kCall);
  Allocation* allocation = call.driver.memory().Find(address);
  if (!handle || !allocation || allocation->kind != MemoryKind::kDevice)
    return CUDA_ERROR_INVALID_VALUE;
  const Arena::Place place = call.driver.memory().arena().PlaceOf(allocation->begin);
  allocation->initialised.reset();  // others may write it from now on
  SharedPiece piece;
  piece.file = ProcessFile::OfThisProcess(place.file);
  piece.offset = place.offset;
  piece.bytes = allocation->bytes;
  *handle = {};
  std::memcpy(handle->reserved, &piece, sizeof piece);
  return CUDA_SUCCESS;
}

ATP_API cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAlloc);
  SharedPiece piece;
  std::memcpy(&piece, handle.reserved, sizeof piece);
  if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !piece.file.IsOne())
    return CUDA_ERROR_INVALID_VALUE;
  if (piece.file.process == getpid())
    return CUDA_ERROR_INVALID_CONTEXT;  // not in the exporter itself
  return Open(call, piece, address);
}
ATP_API cuIpcOpenMemHandle(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  return cuIpcOpenMemHandle_v2(address, handle, flags);
}

ATP_API cuIpcCloseMemHandle(CUdeviceptr address) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kFree);
  Allocation* imported = call.driver.memory().Find(address);
  const auto opened = Opened().find(address);
  if (!imported || imported->kind != MemoryKind::kImported || opened == Opened().end())
    return CUDA_ERROR_INVALID_VALUE;
  if (--opened->second.second > 0) return CUDA_SUCCESS;
  if (const CUresult result = WaitForContext(call, *imported->context); result != CUDA_SUCCESS)
    return result;
  Opened().erase(opened);
  call.driver.memory().Free(call.lane(), imported);
  return CUDA_SUCCESS;
}
