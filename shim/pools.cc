// SPDX-License-Identifier: Apache-2.0
#include "shim/pools.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <new>

#include "shim/call_site.h"
#include "shim/capture.h"
#include "shim/freed_pieces.h"
#include "shim/host_promise.h"
#include "shim/lifecycle.h"
#include "shim/managed.h"
#include "shim/pieces.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/slab.h"

namespace atp::shim {
namespace {

// Found by handle without a lock: entries are never taken away, and a retired one loses its handle.
constexpr size_t kMostPools = 256;
std::atomic<Pool*> pools[kMostPools];
constinit std::mutex mutex;  // for new ones, and for requests that nothing freed serves

Pool* Known(CUmemoryPool handle) {
  for (const std::atomic<Pool*>& entry : pools) {
    Pool* pool = entry.load(std::memory_order_acquire);
    if (pool == nullptr) return nullptr;
    if (pool->handle.load(std::memory_order_relaxed) == handle) return pool;
  }
  return nullptr;
}

// Null: there are too many, and the driver serves this one.
Pool* Add(std::unique_ptr<Pool> pool) {
  for (std::atomic<Pool*>& entry : pools) {
    if (entry.load(std::memory_order_relaxed) != nullptr) continue;
    entry.store(pool.get(), std::memory_order_release);
    return pool.release();
  }
  return nullptr;
}

bool Attribute(CUmemoryPool pool, CUmemPool_attribute attribute) {
  int value = 1;
  if (real().cuMemPoolGetAttribute != nullptr) {
    real().cuMemPoolGetAttribute(pool, attribute, &value);
  }
  return value != 0;
}

void ReadReuse(Pool* pool) {
  const CUmemoryPool handle = pool->handle;
  pool->opportunistic = Attribute(handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC);
  pool->depends = Attribute(handle, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES);
}

Pool* PoolOf(CUmemoryPool handle) {
  if (Pool* known = Known(handle)) return known;
  std::lock_guard lock(mutex);
  if (Pool* known = Known(handle)) return known;
  auto pool = std::make_unique<Pool>();
  pool->handle = pool->named = handle;
  for (int ordinal = 0; ordinal < kMaxDevices && pool->device < 0; ++ordinal) {
    CUmemoryPool usual = nullptr;
    if (DeviceOf(ordinal) == nullptr || real().cuDeviceGetDefaultMemPool == nullptr) continue;
    const bool told = real().cuDeviceGetDefaultMemPool(&usual, ordinal) == CUDA_SUCCESS;
    if (told && usual == handle) pool->device = ordinal;
  }
  pool->driver_only = pool->device < 0;
  ReadReuse(pool.get());
  return Add(std::move(pool));
}

bool Small(uint64_t bytes) { return bytes < Slabs::kMaxBytes; }

// Nothing freed in this stream serves.
Piece* Search(Device* device, CUcontext context, Pool* pool, uint64_t bytes, const StreamKey& key,
              CUresult* result) {
  if (CaptureOpen()) return nullptr;  // what is asked of streams here would disturb it
  if (pool->opportunistic) {
    if (Piece* piece = TakePassed(pool, bytes)) return piece;
  }
  if (Piece* piece = TakeLarger(key, pool, bytes)) return piece;
  const uint64_t in_use = pool->used + bytes;
  if (pool->most != 0 && in_use > pool->most) {
    *result = CUDA_ERROR_OUT_OF_MEMORY;
    return nullptr;
  }
  // What is kept for reuse may be a sixth of the most that was in use.
  if (pool->reserved + bytes > std::max<uint64_t>(pool->used_high, in_use) / 6 * 7) {
    TrimFreed(pool, pool->used);
  }
  Piece* piece = NewPiece(device, context, pool, bytes, result);
  if (piece == nullptr && *result == CUDA_ERROR_OUT_OF_MEMORY && pool->reserved > pool->used) {
    if (pool->depends) piece = TakeAndDepend(key, pool, bytes);
    if (piece != nullptr) return piece;
    WaitForContext(context);
    TrimFreed(pool, 0);
    piece = NewPiece(device, context, pool, bytes, result);
  }
  return piece;
}

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
  Pool* pool = PoolOf(handle);
  if (pool == nullptr || pool->driver_only || pool->device != device->ordinal) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (Small(bytes) &&
      (Settings().Disabled(kDisableSlabs) ||
       device->packed.load(std::memory_order_relaxed) + bytes <= device->budget / 20)) {
    *packed = true;
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  const StreamKey key = KeyOfStream(stream, per_thread, context);
  Piece* piece = TakeFreedIn(key, pool, bytes);
  CUresult result = CUDA_SUCCESS;
  if (piece == nullptr) piece = Search(device, context, pool, bytes, key, &result);
  if (piece == nullptr) return result != CUDA_SUCCESS ? result : CUDA_ERROR_NOT_SUPPORTED;
  RaiseTo(&pool->used_high, pool->used.fetch_add(piece->size) + piece->size);
  *address = piece->address;
  return CUDA_SUCCESS;
}

// The program's free of a live piece: whoever comes first has it.
bool BeginFree(Piece* piece, CUdeviceptr address) {
  PieceState live = PieceState::kLive;
  return piece != nullptr && piece->address == address &&
         piece->state.compare_exchange_strong(live, PieceState::kFreed);
}

}  // namespace

CUresult PlaceInOrder(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream,
                      bool per_thread, bool* packed) {
  return WithPatience([&] { return TryInOrder(address, bytes, pool, stream, per_thread, packed); });
}

CUresult ReleasePieceInOrder(Record* record, CUdeviceptr address, CUstream stream,
                             bool per_thread) {
  Piece* piece = PieceAt(*record, address);
  if (piece == nullptr || piece->address != address || piece->state != PieceState::kLive) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (CaptureOpen() && IsCapturing(stream, per_thread)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  CUcontext context = nullptr;
  if (const CUresult result = real().cuCtxGetCurrent(&context); result != CUDA_SUCCESS) {
    return result;
  }
  if (!BeginFree(piece, address)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = KeepFreed(piece, KeyOfStream(stream, per_thread, context));
  if (result != CUDA_SUCCESS) piece->state = PieceState::kLive;
  return result;
}

CUresult ReleasePiece(Record* record, CUdeviceptr address) {
  Piece* piece = PieceAt(*record, address);
  if (piece == nullptr || piece->address != address || piece->state != PieceState::kLive) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  WaitForUsesOf(*record);
  if (!BeginFree(piece, address)) return CUDA_ERROR_INVALID_VALUE;
  return KeepFreed(piece, StreamKey{});
}

bool PieceAround(uint64_t address, uint64_t* start, uint64_t* bytes, CUmemoryPool* pool) {
  const Record* record = g_tracker.Find(address);
  const Piece* piece = record != nullptr ? PieceAt(*record, address) : nullptr;
  if (piece == nullptr || piece->state.load(std::memory_order_acquire) != PieceState::kLive ||
      address >= piece->address + piece->bytes) {
    return false;
  }
  *start = piece->address;
  *bytes = piece->bytes;
  if (pool != nullptr) *pool = piece->pool.load()->named;
  return true;
}

void NotePool(CUmemoryPool handle, const CUmemPoolProps& props) {
  auto pool = std::make_unique<Pool>();
  pool->handle = handle;
  pool->device = props.location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props.location.id : -1;
  pool->most = props.maxSize;
  pool->named = handle;
  pool->driver_only = pool->device < 0 || props.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
                      props.handleTypes != CU_MEM_HANDLE_TYPE_NONE || props.usage != 0;
  ReadReuse(pool.get());
  std::lock_guard lock(mutex);
  Add(std::move(pool));
}

void TrimPieces(CUmemoryPool handle, uint64_t keep) {
  if (Pool* pool = Known(handle)) TrimFreed(pool, keep);
}

// Memory from it stays valid until it is freed.
void RetirePool(CUmemoryPool handle) {
  Pool* pool = Known(handle);
  if (pool == nullptr) return;
  pool->handle = nullptr;  // the driver may give it to another one
  TrimFreed(pool, 0);
}

void AddPoolNumber(CUmemoryPool handle, CUmemPool_attribute attribute, uint64_t* value) {
  const Pool* pool = Known(handle);
  if (pool == nullptr) return;
  switch (attribute) {
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      *value += pool->reserved;
      break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      *value += pool->reserved_high;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      *value += pool->used;
      break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      *value += pool->used_high;
      break;
    default:
      break;
  }
}

void NotePoolAttribute(CUmemoryPool handle, CUmemPool_attribute attribute) {
  Pool* pool = Known(handle);
  if (pool == nullptr) return;
  if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) pool->reserved_high = pool->reserved.load();
  if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH) pool->used_high = pool->used.load();
  ReadReuse(pool);
}

void ForgetPiecesOf(CUcontext context, int device) {
  const auto goes = [&](const Record& record) {
    return (context == nullptr || record.context == context) &&
           (device < 0 || record.device == device);
  };
  ForgetFreed([&](const Piece& piece) { return goes(*piece.record); });
  g_tracker.ForEach(context, [&](Record* record) {
    PieceTable* table = record->pieces;
    for (uint32_t i = 0; table != nullptr && goes(*record) && i < table->count; ++i) {
      Piece& piece = table->pieces()[i];
      if (piece.state != PieceState::kLive) continue;
      piece.pool.load()->used -= piece.size;
      piece.pool.load()->reserved -= piece.size;
    }
  });
  ForgetFreshPieces(context, device);
}

void ForgetStreamOfPieces(CUstream stream) { ForgetStreamOfFreed(stream); }

void ResetPoolsAfterFork() {
  new (&mutex) std::mutex;
  ResetPiecesAfterFork();
  ResetFreedAfterFork();
}

}  // namespace atp::shim
