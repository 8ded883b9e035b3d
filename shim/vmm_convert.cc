// SPDX-License-Identifier: Apache-2.0
#include "shim/vmm_convert.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "shim/capture.h"
#include "shim/findings.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/native_copy.h"
#include "shim/own_calls.h"
#include "shim/shimlog.h"
#include "shim/vmm_runs.h"

namespace atp::shim {
namespace {

struct Piece {  // a mapping of the range, and what will show its bytes
  uint64_t address = 0;
  const Mapping* mapping = nullptr;
  MemoryHandle native = 0;
};

// The books, when the driver has the memory.
void Adopt(Memory* memory, MemoryHandle native) {
  memory->native = native;
  memory->mapped_at = 0;
  memory->own_references = memory->references > 1 ? memory->references - 1 : 0;
  GiveShare(memory->device, memory->bytes);
  CountNative(*memory, true);
  Count(WhyNative::kRange, memory->bytes);
}

std::vector<Piece> PiecesOf(uint64_t begin, uint64_t end) {
  std::vector<Piece> pieces;
  const auto& mappings = Books().mappings;
  for (auto it = mappings.lower_bound(begin); it != mappings.end() && it->first < end; ++it) {
    pieces.push_back({it->first, &it->second});
  }
  return pieces;
}

bool AllFit(const std::vector<Piece>& pieces) {
  uint64_t bytes[kMaxDevices] = {};
  for (const Piece& piece : pieces) {
    const Memory& memory = *piece.mapping->memory;
    if (!FitsBeside(memory.device, bytes[memory.device] += memory.bytes)) return false;
  }
  return true;
}

CUresult CopyPieces(std::vector<Piece>* pieces) {
  if (!AllFit(*pieces)) return CUDA_ERROR_OUT_OF_MEMORY;
  for (Piece& piece : *pieces) {
    const Mapping& mapping = *piece.mapping;
    const CUresult result = CreateCopy(mapping.memory->prop, mapping.memory->bytes, piece.address,
                                       mapping.bytes, &mapping.access, &piece.native);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// The managed memory goes. False: the driver kept it, and so does the loop.
bool FreeManaged(uint64_t begin, const Range& range, const std::vector<Piece>& pieces) {
  LeaveRun(begin, begin + range.bytes);
  if (range.context == nullptr || real().cuMemFree_v2(begin) == CUDA_SUCCESS) return true;
  for (const Piece& piece : pieces) {
    JoinRun(range, begin, piece.mapping->memory->device, piece.address, piece.mapping->bytes);
  }
  return false;
}

// All this has been tried before at other addresses. True when everything is in its place.
bool ShowNative(uint64_t begin, uint64_t bytes, const std::vector<Piece>& pieces) {
  bool good = ReserveAt(begin, bytes);
  for (const Piece& piece : pieces) {
    Memory* memory = piece.mapping->memory;
    good =
        good &&
        real().cuMemMap(piece.address, piece.mapping->bytes, 0, piece.native, 0) == CUDA_SUCCESS &&
        AllowAsNoted(piece.address, piece.mapping->bytes, piece.mapping->access) == CUDA_SUCCESS;
    Adopt(memory, piece.native);
    // The program has given its handles back: the mapping alone keeps the memory.
    if (memory->references == 0) real().cuMemRelease(piece.native);
  }
  if (!good) SayLost(begin);
  return good;
}

bool Stays(uint64_t begin, const char* why, CUresult error = CUDA_SUCCESS) {
  ATP_LOG_WARN("the range at 0x%llx stays managed memory: %s (error %d)",
               static_cast<unsigned long long>(begin), why, static_cast<int>(error));
  return false;
}

// The context in which the bytes of unmapped memory can be copied.
CUcontext ContextOfContents(const Memory& memory) {
  uint64_t begin = 0;
  if (const Range* range = RangeAround(memory.contents_at, 1, &begin)) return range->context;
  CUcontext current = nullptr;
  if (CurrentDevice(&current) != nullptr) return current;
  const Device* device = DeviceOf(memory.device);
  return device != nullptr ? device->context : nullptr;
}

CUresult CopyOfUnmapped(const Memory& memory, MemoryHandle* native) {
  if (memory.contents_at == 0) return real().cuMemCreate(native, memory.bytes, &memory.prop, 0);
  const CUcontext context = ContextOfContents(memory);
  if (context == nullptr) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  if (CaptureOpen()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;  // copying has to wait
  if (!FitsBeside(memory.device, memory.bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  WithContext current(context);
  return CreateCopy(memory.prop, memory.bytes, memory.contents_at,
                    std::min(memory.contents_bytes, memory.bytes), nullptr, native);
}

}  // namespace

bool WaitForEveryContext() { return !CaptureOpen() && EachContext(WaitForContext); }

CUresult GiveToDriver(Memory* memory) {
  if (memory->native != 0) return CUDA_SUCCESS;
  if (memory->mapped_at != 0) {
    uint64_t begin = 0;
    const bool found = RangeAround(memory->mapped_at, 1, &begin) != nullptr;
    return found && GiveToDriver(begin) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
  }
  MemoryHandle native = 0;
  const CUresult result = CopyOfUnmapped(*memory, &native);
  if (result != CUDA_SUCCESS) return result;
  DropContents(memory);
  Adopt(memory, native);
  return CUDA_SUCCESS;
}

bool GiveToDriver(uint64_t begin) {
  const Range range = Books().ranges.at(begin);
  std::optional<Standstill> standstill;
  if (AnyMapping(begin, range.bytes)) {
    if (range.context == nullptr) return Stays(begin, "its context is gone");
    standstill.emplace();
    if (!WaitForEveryContext()) return Stays(begin, "a stream captures, or a context is in error");
  }
  WithContext current(range.context);
  if (range.context != nullptr && !ReservesWhatWasManaged(range.bytes)) {
    return Stays(begin, "this driver does not reserve addresses that managed memory had");
  }
  if (!KeepContentsElsewhere(begin, range.bytes)) return Stays(begin, "no memory to copy to");
  std::vector<Piece> pieces = PiecesOf(begin, begin + range.bytes);
  const CUresult result = CopyPieces(&pieces);
  if (result != CUDA_SUCCESS || !FreeManaged(begin, range, pieces)) {
    for (const Piece& piece : pieces) {
      if (piece.native != 0) real().cuMemRelease(piece.native);
    }
    return Stays(begin, "plain memory in its place is refused", result);
  }
  Books().ranges.erase(begin);
  if (!ShowNative(begin, range.bytes, pieces)) return false;
  ATP_LOG_INFO("the range of %s at 0x%llx is the driver's from now on, with %zu mappings",
               HumanBytes(range.bytes).text(), static_cast<unsigned long long>(begin),
               pieces.size());
  return true;
}

}  // namespace atp::shim
