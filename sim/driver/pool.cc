// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/pool.h"

#include <algorithm>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

constexpr uint64_t kGranule = 512;

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

bool MayReuse(Driver& driver, Lane lane, const Pool& pool, const Pool::FreePiece& piece,
              uint64_t stream) {
  if (piece.stream == 0 || piece.stream == stream) return true;
  return pool.reuse[1] && driver.machine().EventDone(lane, piece.passed);
}

void Settle(Driver& driver, Pool::FreePiece* piece) {
  if (piece->stream) driver.machine().DropEvent(piece->passed);
  piece->stream = 0;
}

// Marks what all streams have passed, and joins neighbours within a chunk.
void SettleAll(Driver& driver, Lane lane, Pool* pool) {
  for (auto& [address, piece] : pool->pieces) {
    if (piece.stream && driver.machine().EventDone(lane, piece.passed)) Settle(driver, &piece);
  }
  for (auto it = pool->pieces.begin(); it != pool->pieces.end();) {
    auto next = std::next(it);
    const bool joins = next != pool->pieces.end() && next->first == it->first + it->second.bytes &&
                       it->second.stream == 0 && next->second.stream == 0 &&
                       !pool->chunks.count(next->first);
    if (joins) {
      it->second.bytes += next->second.bytes;
      pool->pieces.erase(next);
    } else {
      it = next;
    }
  }
}

// The smallest piece that fits, end() when there is none.
std::map<uint64_t, Pool::FreePiece>::iterator BestFit(Driver& driver, Lane lane, Pool& pool,
                                                      uint64_t stream, uint64_t bytes) {
  auto best = pool.pieces.end();
  for (auto it = pool.pieces.begin(); it != pool.pieces.end(); ++it) {
    if (it->second.bytes < bytes || !MayReuse(driver, lane, pool, it->second, stream)) continue;
    if (best == pool.pieces.end() || it->second.bytes < best->second.bytes) best = it;
  }
  return best;
}

CUresult Grow(Driver& driver, Lane lane, Pool& pool, uint64_t bytes) {
  const uint64_t chunk = RoundUp(bytes, kBlockBytes);
  if (chunk < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  if (pool.props.maxSize && pool.reserved + chunk > pool.props.maxSize)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (driver.machine().AllocDevice(lane, pool.device->index, chunk) != MachineStatus::kOk)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t address = driver.memory().arena().Allocate(chunk, kBlockBytes);
  if (!address) {
    driver.machine().FreeDevice(lane, pool.device->index, chunk);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool.chunks[address] = chunk;
  pool.pieces[address] = {chunk, 0, 0};
  pool.reserved += chunk;
  pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
  return CUDA_SUCCESS;
}

}  // namespace

Pool* NewDefaultPool(Driver& driver, Device& device) {
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device.ordinal};
  Pool* pool = NewPool(driver, device, props);
  pool->is_default = true;
  return pool;
}

Pool* NewPool(Driver& driver, Device& device, const CUmemPoolProps& props) {
  auto* pool = new Pool;
  pool->device = &device;
  pool->props = props;
  return driver.pools.Add(pool);
}

void DestroyPool(Driver& driver, Lane lane, Pool* pool) {
  if (pool->device->pool == pool) pool->device->pool = pool->device->default_pool;
  SettleAll(driver, lane, pool);
  TrimPool(driver, lane, *pool, 0);
  driver.pools.Remove(pool);
  if (pool->reserved == 0) {
    delete pool;
  } else {
    driver.retired_pools.push_back(pool);  // until its memory has come back
  }
}

CUresult PoolAllocate(Driver& driver, Lane lane, Pool& pool, Stream& stream, uint64_t bytes,
                      uint64_t* address) {
  const uint64_t rounded = RoundUp(bytes, kGranule);
  if (rounded < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  auto fit = BestFit(driver, lane, pool, stream.number, rounded);
  if (fit == pool.pieces.end()) {
    SettleAll(driver, lane, &pool);
    fit = BestFit(driver, lane, pool, stream.number, rounded);
  }
  if (fit == pool.pieces.end()) {
    CUresult result = Grow(driver, lane, pool, rounded);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && TrimPools(driver, lane, pool.device->index))
      result = Grow(driver, lane, pool, rounded);
    if (result != CUDA_SUCCESS) return result;
    fit = BestFit(driver, lane, pool, stream.number, rounded);
  }
  const uint64_t begin = fit->first;
  Pool::FreePiece piece = fit->second;
  const bool rest_waits = piece.stream == stream.number && piece.bytes > rounded;
  if (!rest_waits) Settle(driver, &piece);
  pool.pieces.erase(fit);
  if (piece.bytes > rounded)
    pool.pieces[begin + rounded] = {piece.bytes - rounded, piece.stream, piece.passed};
  pool.used += rounded;
  pool.used_high = std::max(pool.used_high, pool.used);
  auto record = std::make_unique<Allocation>();
  record->begin = begin;
  record->bytes = bytes;
  record->reserved = rounded;
  record->kind = MemoryKind::kPooled;
  record->context = stream.context;
  record->device = pool.device->index;
  record->host_delta = driver.memory().arena().device_delta();
  record->pool = &pool;
  record->peers = pool.peers;
  driver.memory().Insert(std::move(record));
  *address = begin;
  return CUDA_SUCCESS;
}

void PoolFree(Driver& driver, Lane lane, Allocation* allocation, const Stream* stream) {
  Pool& pool = *allocation->pool;
  Pool::FreePiece piece{allocation->reserved, 0, 0};
  if (stream) {
    piece.stream = stream->number;
    piece.passed = driver.machine().NewEvent();
    driver.machine().Record(lane, stream->id, piece.passed);
  }
  pool.pieces[allocation->begin] = piece;
  pool.used -= allocation->reserved;
  driver.memory().Remove(allocation);
}

bool TrimPool(Driver& driver, Lane lane, Pool& pool, uint64_t keep) {
  SettleAll(driver, lane, &pool);
  bool trimmed = false;
  for (auto it = pool.chunks.begin(); it != pool.chunks.end() && pool.reserved > keep;) {
    const auto [address, bytes] = *it;
    const auto piece = pool.pieces.find(address);
    const bool unused =
        piece != pool.pieces.end() && piece->second.bytes == bytes && piece->second.stream == 0;
    if (!unused || pool.reserved - bytes < keep) {
      ++it;
      continue;
    }
    pool.pieces.erase(piece);
    it = pool.chunks.erase(it);
    pool.reserved -= bytes;
    driver.machine().FreeDevice(lane, pool.device->index, bytes);
    driver.memory().arena().Free(address, bytes);
    trimmed = true;
  }
  return trimmed;
}

bool TrimPools(Driver& driver, Lane lane, int device_index, bool to_thresholds) {
  bool trimmed = false;
  for (Pool* pool : driver.pools.all()) {
    if (pool->device->index != device_index) continue;
    trimmed |= TrimPool(driver, lane, *pool, to_thresholds ? pool->release_threshold : 0);
  }
  std::erase_if(driver.retired_pools, [&](Pool* pool) {
    trimmed |= TrimPool(driver, lane, *pool, 0);
    if (pool->reserved) return false;
    delete pool;
    return true;
  });
  return trimmed;
}

}  // namespace atp::sim
