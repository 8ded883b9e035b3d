// SPDX-License-Identifier: Apache-2.0
#include "shim/pools.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

#include "shim/call_site.h"
#include "shim/capture.h"
#include "shim/host_promise.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/own_calls.h"
#include "shim/settings.h"
#include "shim/slab.h"

namespace atp::shim {
namespace {

struct Pool {
  CUmemoryPool handle = nullptr;
  int device = -1;
  bool driver_only = false;  // made for export, on the host, or unknown
  uint64_t most = 0;         // bytes, 0 = no limit
  uint64_t used = 0, used_high = 0, reserved = 0, reserved_high = 0;
};

struct Piece {
  uint64_t address = 0;
  uint64_t bytes = 0;  // as the program asked
  uint64_t size = 0;   // what is there
  Record* record = nullptr;
  Pool* pool = nullptr;
  // Of a freed piece: where it was freed (kAnyStream: only the event tells), and what that stream
  // must have passed. No event: everybody may have it.
  uintptr_t stream = 0;
  CUevent passed = nullptr;
  uint64_t freed = 0;  // counts up: the oldest goes first
};

constexpr uintptr_t kAnyStream = 0, kLegacyStream = 1;

struct State {
  std::unordered_map<CUmemoryPool, std::unique_ptr<Pool>> pools;
  std::vector<std::unique_ptr<Pool>> retired;
  std::map<uint64_t, std::unique_ptr<Piece>> live;  // by address
  // By pool and size class, then by address. The lowest one serves: equal sequences of requests get
  // equal addresses, whatever the order of the frees before.
  std::map<std::pair<Pool*, uint64_t>, std::map<uint64_t, std::unique_ptr<Piece>>> idle;
  std::vector<CUevent> events;
  uint64_t frees = 0;
};

constinit std::mutex mutex;
State& All() {  // never destroyed: hooks may run until the very end
  static State* state = new State;
  return *state;
}
Slabs slabs;  // for small pieces; slots of one slab are in one pool's hands

// The default stream of a thread is another one in each thread, so its handle says nothing.
uintptr_t KeyOf(CUstream stream, bool per_thread) {
  if (stream == nullptr) return per_thread ? kAnyStream : kLegacyStream;
  return stream == CU_STREAM_PER_THREAD ? kAnyStream : reinterpret_cast<uintptr_t>(stream);
}

bool Small(uint64_t bytes) { return bytes < Slabs::kMaxBytes; }

// Pieces of a class are at most a quarter larger than another.
uint64_t ClassOf(uint64_t bytes) {
  return Slabs::SlotBytes(Small(bytes) ? bytes : RoundUpToGranule(bytes));
}

Pool* PoolOf(CUmemoryPool handle) {
  std::unique_ptr<Pool>& pool = All().pools[handle];
  if (pool != nullptr) return pool.get();
  pool = std::make_unique<Pool>();
  pool->handle = handle;
  for (int ordinal = 0; ordinal < kMaxDevices && pool->device < 0; ++ordinal) {
    CUmemoryPool usual = nullptr;
    if (DeviceOf(ordinal) == nullptr || real().cuDeviceGetDefaultMemPool == nullptr) continue;
    const bool told = real().cuDeviceGetDefaultMemPool(&usual, ordinal) == CUDA_SUCCESS;
    if (told && usual == handle) pool->device = ordinal;
  }
  pool->driver_only = pool->device < 0;
  return pool.get();
}

bool Passed(Piece* piece) {
  if (piece->passed == nullptr) return true;
  Relaxed relaxed;
  if (real().cuEventQuery(piece->passed) != CUDA_SUCCESS) return false;
  All().events.push_back(piece->passed);
  piece->passed = nullptr;
  return true;
}

void CountIdle(const Piece& piece, bool idle) {
  Device* device = DeviceOf(piece.record->device);
  if (device == nullptr) return;
  if (idle) {
    device->idle.fetch_add(piece.size, std::memory_order_relaxed);
  } else {
    device->idle.fetch_sub(piece.size, std::memory_order_relaxed);
  }
}

// Takes a freed piece for use in `stream`; null: none fits, or those that do are still in use.
std::unique_ptr<Piece> Reuse(Pool* pool, uint64_t bytes, CUstream stream, bool per_thread) {
  constexpr size_t kMostTried = 32;
  const uintptr_t key = KeyOf(stream, per_thread);
  auto& list = All().idle[{pool, ClassOf(bytes)}];
  for (const bool same_stream : {true, false}) {
    size_t tried = 0;
    for (auto at = list.begin(); at != list.end() && tried < kMostTried; ++at, ++tried) {
      Piece* piece = at->second.get();
      if (piece->size < bytes) continue;
      const bool ordered = key != kAnyStream && piece->stream == key;
      if (same_stream ? !ordered : !Passed(piece)) continue;
      if (piece->passed != nullptr) {
        All().events.push_back(piece->passed);
        piece->passed = nullptr;
      }
      std::unique_ptr<Piece> taken = std::move(at->second);
      list.erase(at);
      CountIdle(*taken, false);
      return taken;
    }
  }
  return nullptr;
}

// Back to the driver. The device has passed every use of the piece.
void Unmap(std::unique_ptr<Piece> piece) {
  piece->pool->reserved -= piece->size;
  if (piece->record->slab == nullptr) {
    UnmapManaged(piece->record);
    return;
  }
  bool empty = false;
  if (slabs.Give(piece->record, piece->address, &empty) && empty) UnmapManaged(piece->record);
}

void AddIdle(std::unique_ptr<Piece> piece) {
  auto& list = All().idle[{piece->pool, Slabs::SlotBytes(piece->size)}];
  list[piece->address] = std::move(piece);
}

// Gives back freed pieces that every stream has passed, the oldest first, until at most `keep`
// bytes of the pool are in our hands.
void TrimIdle(Pool* pool, uint64_t keep) {
  std::vector<std::unique_ptr<Piece>> passed;
  for (auto& [where, list] : All().idle) {
    if (where.first != pool) continue;
    for (auto& [address, piece] : list) {
      if (Passed(piece.get())) passed.push_back(std::move(piece));
    }
    std::erase_if(list, [](const auto& entry) { return entry.second == nullptr; });
  }
  std::sort(passed.begin(), passed.end(),
            [](const auto& a, const auto& b) { return a->freed < b->freed; });
  for (std::unique_ptr<Piece>& piece : passed) {
    if (pool->reserved > keep) {
      CountIdle(*piece, false);
      Unmap(std::move(piece));
    } else {
      AddIdle(std::move(piece));
    }
  }
}

std::unique_ptr<Piece> New(Device* device, CUcontext context, Pool* pool, uint64_t bytes,
                           CUresult* result) {
  auto piece = std::make_unique<Piece>();
  piece->pool = pool;
  if (!Small(bytes)) {
    piece->record = MapManaged(device, context, bytes, result);
    if (piece->record == nullptr) return nullptr;
    piece->address = piece->record->address;
    piece->size = piece->record->mapped_bytes;
  } else {
    piece->size = Slabs::SlotBytes(bytes);
    piece->address = slabs.Take(piece->size, device->ordinal, context);
    if (piece->address == 0) {
      Record* record = MapManaged(device, context, kGranule, result);
      if (record == nullptr) return nullptr;
      if (!slabs.AddSlab(record, piece->size)) {
        UnmapManaged(record);
        return nullptr;
      }
      piece->address = slabs.Take(piece->size, device->ordinal, context);
    }
    piece->record = g_tracker.Find(piece->address);
  }
  piece->record->pooled = true;
  pool->reserved += piece->size;
  pool->reserved_high = std::max(pool->reserved_high, pool->reserved);
  return piece;
}

CUresult Place(Device* device, CUcontext context, Pool* pool, uint64_t bytes, CUstream stream,
               bool per_thread, CUdeviceptr* address) {
  std::unique_ptr<Piece> piece = Reuse(pool, bytes, stream, per_thread);
  if (piece == nullptr) {
    if (CaptureOpen()) return CUDA_ERROR_NOT_SUPPORTED;  // the driver's own calls would disturb it
    if (pool->most != 0 && pool->used + bytes > pool->most) return CUDA_ERROR_OUT_OF_MEMORY;
    // What is kept for reuse may be a quarter of the most that was in use.
    const uint64_t in_use = pool->used + bytes;
    if (pool->reserved + bytes > std::max(pool->used_high, in_use) / 4 * 5) {
      TrimIdle(pool, pool->used);
    }
    CUresult result = CUDA_SUCCESS;
    piece = New(device, context, pool, bytes, &result);
    if (piece == nullptr && result == CUDA_ERROR_OUT_OF_MEMORY && pool->reserved > pool->used) {
      WaitForContext(context);
      TrimIdle(pool, 0);
      piece = New(device, context, pool, bytes, &result);
    }
    if (piece == nullptr) return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
  }
  piece->bytes = bytes;
  pool->used += piece->size;
  pool->used_high = std::max(pool->used_high, pool->used);
  *address = piece->address;
  All().live[piece->address] = std::move(piece);
  return CUDA_SUCCESS;
}

void MakeIdle(std::map<uint64_t, std::unique_ptr<Piece>>::iterator at, uintptr_t stream,
              CUevent passed) {
  std::unique_ptr<Piece> piece = std::move(at->second);
  All().live.erase(at);
  piece->stream = stream;
  piece->passed = passed;
  piece->freed = ++All().frees;
  piece->pool->used -= piece->size;
  CountIdle(*piece, true);
  AddIdle(std::move(piece));
}

CUevent TakeEvent() {
  CUevent event = nullptr;
  if (!All().events.empty()) {
    event = All().events.back();
    All().events.pop_back();
  } else if (real().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return nullptr;
  }
  return event;
}

}  // namespace

namespace {

CUresult TryInOrder(CUdeviceptr* address, size_t bytes, CUmemoryPool handle, CUstream stream,
                    bool per_thread, bool* packed) {
  constexpr uint64_t kAbsurd = 1ull << 46;  // the driver refuses it with its own error
  *packed = false;
  CUcontext context = nullptr;
  Device* device = address != nullptr && bytes != 0 ? CurrentDevice(&context) : nullptr;
  if (device == nullptr || bytes > kAbsurd || !device->can_manage || !Placing() ||
      Settings().Disabled(kDisablePools) || real().cuDeviceGetMemPool == nullptr ||
      (CaptureOpen() && IsCapturing(stream, per_thread))) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (CalledByExporter()) return CUDA_ERROR_NOT_SUPPORTED;
  if (handle == nullptr && real().cuDeviceGetMemPool(&handle, device->ordinal) != CUDA_SUCCESS) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  std::lock_guard lock(mutex);
  Pool* pool = PoolOf(handle);
  if (pool->driver_only || pool->device != device->ordinal) return CUDA_ERROR_NOT_SUPPORTED;
  if (Small(bytes) &&
      (Settings().Disabled(kDisableSlabs) ||
       device->packed.load(std::memory_order_relaxed) + bytes <= device->budget / 20)) {
    *packed = true;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return Place(device, context, pool, bytes, stream, per_thread, address);
}

}  // namespace

CUresult PlaceInOrder(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream,
                      bool per_thread, bool* packed) {
  return WithPatience([&] { return TryInOrder(address, bytes, pool, stream, per_thread, packed); });
}

CUresult ReleasePieceInOrder(CUdeviceptr address, CUstream stream, bool per_thread) {
  std::lock_guard lock(mutex);
  const auto found = All().live.find(address);
  if (found == All().live.end()) return CUDA_ERROR_INVALID_VALUE;
  if (CaptureOpen() && IsCapturing(stream, per_thread)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  const CUevent event = TakeEvent();
  if (event == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto record = per_thread && real().cuEventRecord_ptsz != nullptr ? real().cuEventRecord_ptsz
                                                                         : real().cuEventRecord;
  const CUresult result = record(event, stream);
  if (result != CUDA_SUCCESS) {
    All().events.push_back(event);
    return result;
  }
  MakeIdle(found, KeyOf(stream, per_thread), event);
  return CUDA_SUCCESS;
}

CUresult ReleasePiece(Record* record, CUdeviceptr address) {
  {
    std::lock_guard lock(mutex);
    if (!All().live.contains(address)) return CUDA_ERROR_INVALID_VALUE;
  }
  WaitForUsesOf(*record);
  std::lock_guard lock(mutex);
  const auto found = All().live.find(address);
  if (found == All().live.end()) return CUDA_ERROR_INVALID_VALUE;
  MakeIdle(found, kAnyStream, nullptr);
  return CUDA_SUCCESS;
}

bool PieceAround(uint64_t address, uint64_t* start, uint64_t* bytes, CUmemoryPool* pool) {
  std::lock_guard lock(mutex);
  auto it = All().live.upper_bound(address);
  if (it == All().live.begin()) return false;
  const Piece& piece = *(--it)->second;
  if (address >= piece.address + piece.bytes) return false;
  *start = piece.address;
  *bytes = piece.bytes;
  if (pool != nullptr) *pool = piece.pool->handle;
  return true;
}

void NotePool(CUmemoryPool handle, const CUmemPoolProps& props) {
  auto pool = std::make_unique<Pool>();
  pool->handle = handle;
  pool->device = props.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props.location.id : -1;
  pool->most = props.maxSize;
  pool->driver_only = pool->device < 0 || props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
                      props.handleTypes != CU_MEM_HANDLE_TYPE_NONE || props.usage != 0;
  std::lock_guard lock(mutex);
  All().pools[handle] = std::move(pool);
}

void TrimPieces(CUmemoryPool handle, uint64_t keep) {
  std::lock_guard lock(mutex);
  const auto pool = All().pools.find(handle);
  if (pool != All().pools.end()) TrimIdle(pool->second.get(), keep);
}

// Memory from it stays valid until it is freed.
void RetirePool(CUmemoryPool handle) {
  std::lock_guard lock(mutex);
  const auto pool = All().pools.find(handle);
  if (pool == All().pools.end()) return;
  TrimIdle(pool->second.get(), 0);
  All().retired.push_back(std::move(pool->second));
  All().pools.erase(pool);
}

void AddPoolNumber(CUmemoryPool handle, CUmemPool_attribute attribute, uint64_t* value) {
  std::lock_guard lock(mutex);
  const auto found = All().pools.find(handle);
  if (found == All().pools.end()) return;
  const Pool& pool = *found->second;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *value += pool.reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *value += pool.reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *value += pool.used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *value += pool.used_high;
      break;
    default:
      break;
  }
}

void ResetPoolNumber(CUmemoryPool handle, CUmemPool_attribute attribute) {
  std::lock_guard lock(mutex);
  const auto found = All().pools.find(handle);
  if (found == All().pools.end()) return;
  Pool& pool = *found->second;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool.reserved_high = pool.reserved;
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool.used_high = pool.used;
}

void ForgetPiecesOf(CUcontext context, int device) {
  std::lock_guard lock(mutex);
  const auto goes = [&](const Piece& piece) {
    return (context == nullptr || piece.record->context == context) &&
           (device < 0 || piece.record->device == device);
  };
  std::erase_if(All().live, [&](const auto& entry) {
    Piece& piece = *entry.second;
    if (!goes(piece)) return false;
    piece.pool->used -= piece.size;
    piece.pool->reserved -= piece.size;
    return true;
  });
  for (auto& [where, list] : All().idle) {
    std::erase_if(list, [&](const auto& entry) {
      const Piece& piece = *entry.second;
      if (!goes(piece)) return false;
      CountIdle(piece, false);
      piece.pool->reserved -= piece.size;
      return true;
    });
  }
  All().events.clear();  // which context each was of is not known
}

void ForgetStreamOfPieces(CUstream stream) {
  const auto key = reinterpret_cast<uintptr_t>(stream);
  std::lock_guard lock(mutex);
  for (auto& [where, list] : All().idle) {
    for (auto& [address, piece] : list) {
      if (piece->stream == key) piece->stream = kAnyStream;
    }
  }
}

void ResetPoolsAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
