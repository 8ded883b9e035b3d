// SPDX-License-Identifier: Apache-2.0
// Plain device memory in another process. A handle says where the bytes lie in the exporter's
// memory file, which the importer opens through /proc and maps. Bytes are shared, virtual time is
// not: each process has a machine of its own. Managed memory is refused, as a real driver does;
// events between processes are not there.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

struct SharedPiece {  // what a CUipcMemHandle holds
  char magic[8] = "ATP ipc";
  int64_t process = 0;
  int32_t file = -1;  // descriptor in that process
  int32_t unused = 0;
  uint64_t inode = 0;  // of the file: process numbers and descriptors are used again
  uint64_t offset = 0, bytes = 0;
};
static_assert(sizeof(SharedPiece) <= sizeof(CUipcMemHandle));

// Memory that this process has opened, with how often.
std::map<uint64_t, std::pair<SharedPiece, unsigned>>& Opened() {  // under the driver's lock
  static auto* const opened = new std::map<uint64_t, std::pair<SharedPiece, unsigned>>;
  return *opened;
}

uint64_t InodeOf(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

// The exporter's file; -1 when it has ended or may not be looked into.
int OpenFile(const SharedPiece& piece) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", static_cast<long long>(piece.process),
                piece.file);
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file >= 0 && InodeOf(file) == piece.inode) return file;
  if (file >= 0) close(file);
  return -1;
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
  const int file = OpenFile(piece);
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
  const Allocation* allocation = call.driver.memory().Find(address);
  if (!handle || !allocation || allocation->kind != MemoryKind::kDevice)
    return CUDA_ERROR_INVALID_VALUE;
  const Arena::Place place = call.driver.memory().arena().PlaceOf(allocation->begin);
  SharedPiece piece;
  piece.process = getpid();
  piece.file = place.file;
  piece.inode = InodeOf(place.file);
  piece.offset = place.offset;
  piece.bytes = allocation->bytes;
  *handle = {};
  std::memcpy(handle->reserved, &piece, sizeof piece);
  return CUDA_SUCCESS;
}

ATP_API cuIpcOpenMemHandle_v2(CUdeviceptr* address, CUipcMemHandle handle, unsigned flags) {
  ATP_CALL(kNeedsContext | kUnsafeInCapture, cost::kAlloc);
  SharedPiece piece;
  const SharedPiece blank;
  std::memcpy(&piece, handle.reserved, sizeof piece);
  if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
      std::memcmp(piece.magic, blank.magic, sizeof blank.magic) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (piece.process == getpid()) return CUDA_ERROR_INVALID_CONTEXT;  // not in the exporter itself
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

ATP_API cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  ATP_CALL(kNeedsContext, cost::kCall);
  if (!handle || !call.driver.events.Get(event)) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;
}
