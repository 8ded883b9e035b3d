// SPDX-License-Identifier: Apache-2.0
#include "shim/pieces.h"

#include <sys/mman.h>

#include <map>
#include <mutex>
#include <new>
#include <set>
#include <tuple>

#include "shim/managed.h"
#include "shim/slab.h"

namespace atp::shim {
namespace {

struct ByAddress {
  bool operator()(const Piece* a, const Piece* b) const { return a->address < b->address; }
};
using Kind = std::tuple<int, CUcontext, uint64_t>;  // device, context, size

struct State {
  std::map<Kind, std::set<Piece*, ByAddress>> fresh;  // slots that nobody has
  std::map<uint32_t, PieceTable*> spare;              // by count
  char* chunk = nullptr;                              // for new tables
  size_t left = 0;
};
constinit std::mutex mutex;
State& All() {  // never destroyed: hooks may run until the very end
  static State* state = new State;
  return *state;
}

bool Small(uint64_t bytes) { return bytes < Slabs::kMaxBytes; }

Kind KindOf(const Piece& piece) {
  return {piece.record->device, piece.record->context, piece.size};
}

PieceTable* NewTable(uint32_t count) {
  PieceTable*& spare = All().spare[count];
  if (spare != nullptr) {
    PieceTable* table = spare;
    spare = table->next;
    return table;
  }
  constexpr size_t kChunk = 1u << 20;  // holds the largest table
  const size_t bytes = sizeof(PieceTable) + count * sizeof(Piece);
  if (bytes > All().left) {
    void* chunk = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED) return nullptr;
    All().chunk = static_cast<char*>(chunk);
    All().left = kChunk;
  }
  void* memory = All().chunk;
  All().chunk += bytes;
  All().left -= bytes;
  auto* table = new (memory) PieceTable;
  for (uint32_t i = 0; i < count; ++i) new (table->pieces() + i) Piece;
  return table;
}

// Memory for one large piece, or for many small ones; false as NewPiece.
bool Grow(Device* device, CUcontext context, uint64_t bytes, CUresult* result) {
  const uint64_t size = PieceSize(bytes), mapped = Small(bytes) ? Slabs::SlabBytes(bytes) : size;
  const auto count = static_cast<uint32_t>(mapped / size);
  PieceTable* table = NewTable(count);
  if (table == nullptr) return false;
  Record* record = MapManaged(device, context, Small(bytes) ? mapped : bytes, result);
  if (record == nullptr) {
    table->next = All().spare[count];
    All().spare[count] = table;
    return false;
  }
  table->slot_bytes = size;
  table->count = table->fresh = count;
  for (uint32_t i = 0; i < count; ++i) {
    Piece& piece = table->pieces()[i];
    piece.address = record->address + i * size;
    piece.size = size;
    piece.record = record;
    piece.state.store(PieceState::kFresh, std::memory_order_relaxed);
    All().fresh[KindOf(piece)].insert(&piece);
  }
  record->pieces = table;
  return true;
}

}  // namespace

uint64_t PieceSize(uint64_t bytes) {
  return Small(bytes) ? Slabs::SlotBytes(bytes) : RoundUpToGranule(bytes);
}

Piece* PieceAt(const Record& record, uint64_t address) {
  PieceTable* table = record.pieces;
  if (table == nullptr) return nullptr;
  const uint64_t index = (address - record.address) / table->slot_bytes;
  return index < table->count ? table->pieces() + index : nullptr;
}

Piece* NewPiece(Device* device, CUcontext context, Pool* pool, uint64_t bytes, CUresult* result) {
  const uint64_t size = PieceSize(bytes);
  std::lock_guard lock(mutex);
  auto& fresh = All().fresh[{device->ordinal, context, size}];
  if (fresh.empty() && !Grow(device, context, bytes, result)) return nullptr;
  Piece* piece = *fresh.begin();
  fresh.erase(fresh.begin());
  --piece->record->pieces->fresh;
  piece->pool.store(pool, std::memory_order_relaxed);
  piece->bytes.store(bytes, std::memory_order_relaxed);
  piece->state.store(PieceState::kLive, std::memory_order_release);
  pool->reserved += size;
  RaiseTo(&pool->reserved_high, pool->reserved);
  return piece;
}

void DropPiece(Piece* piece) {
  std::unique_lock lock(mutex);
  piece->pool.load(std::memory_order_relaxed)->reserved -= piece->size;
  piece->state.store(PieceState::kFresh, std::memory_order_relaxed);
  Record* record = piece->record;
  PieceTable* table = record->pieces;
  auto& fresh = All().fresh[KindOf(*piece)];
  fresh.insert(piece);
  if (++table->fresh < table->count) return;
  for (uint32_t i = 0; i < table->count; ++i) fresh.erase(table->pieces() + i);
  record->pieces = nullptr;
  lock.unlock();
  UnmapManaged(record);  // which may wait for the device
  lock.lock();
  table->next = All().spare[table->count];
  All().spare[table->count] = table;
}

void ForgetFreshPieces(CUcontext context, int device) {
  std::lock_guard lock(mutex);
  std::erase_if(All().fresh, [&](const auto& entry) {
    return (device < 0 || std::get<0>(entry.first) == device) &&
           (context == nullptr || std::get<1>(entry.first) == context);
  });
}

void RaiseTo(std::atomic<uint64_t>* high, uint64_t value) {
  uint64_t before = high->load(std::memory_order_relaxed);
  while (before < value && !high->compare_exchange_weak(before, value, std::memory_order_relaxed)) {
  }
}

void ResetPiecesAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
