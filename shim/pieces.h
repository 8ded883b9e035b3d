// SPDX-License-Identifier: Apache-2.0
// Pieces of stream-ordered memory (pools.h): an allocation of its own for each of 1 MiB and more,
// slots of a 2 MiB allocation for smaller ones. A piece is found from its address without a lock.
#pragma once

#include <atomic>
#include <cstdint>

#include "shim/device.h"
#include "shim/tracker.h"

namespace atp::shim {

struct Pool {
  std::atomic<CUmemoryPool> handle{nullptr};  // null: destroyed
  CUmemoryPool named = nullptr;               // what it was called, for its memory's sake
  int device = -1;
  bool driver_only = false;                              // made for export, on the host, or unknown
  uint64_t most = 0;                                     // bytes, 0 = no limit
  std::atomic<bool> opportunistic{true}, depends{true};  // CU_MEMPOOL_ATTR_REUSE_ALLOW_...
  std::atomic<uint64_t> used{0}, used_high{0}, reserved{0}, reserved_high{0};
};

struct StreamMark;  // freed_pieces.h

// Which stream freed a piece: a handle that any thread may use (legacy and the thread's own stream
// by their special handles), and a number that is never that of another stream.
struct StreamKey {
  uint64_t number = 0;
  CUstream stream = nullptr;
  CUcontext context = nullptr;
};

enum class PieceState : uint8_t { kFresh, kLive, kFreed };

struct Piece {
  uint64_t address = 0, size = 0;  // as long as its record lives
  Record* record = nullptr;
  std::atomic<PieceState> state{PieceState::kFresh};
  std::atomic<uint64_t> bytes{0};  // as the program asked
  std::atomic<Pool*> pool{nullptr};
  // Of a freed piece, under the lock of whoever keeps it.
  StreamKey freed_in;
  StreamMark* mark =
      nullptr;         // recorded behind the free; null: not yet, the stream is there to ask
  uint64_t freed = 0;  // counts up: the oldest goes first
};

// The pieces of one record. Never unmapped: a program that uses what it has freed finds an old one.
struct PieceTable {
  uint64_t slot_bytes = 0;
  uint32_t count = 0, fresh = 0;
  PieceTable* next = nullptr;  // spare ones
  Piece* pieces() { return reinterpret_cast<Piece*>(this + 1); }
};

// What a request of so many bytes takes; a freed piece serves exactly those that take as much.
uint64_t PieceSize(uint64_t bytes);

// Null: no piece is there. Lock-free.
Piece* PieceAt(const Record& record, uint64_t address);

// A piece that nobody has had, live. One lock, held across the driver's allocation. Null with
// *result as MapManaged has it.
Piece* NewPiece(Device* device, CUcontext context, Pool* pool, uint64_t bytes, CUresult* result);
// Gives a piece back whose uses the device has passed: its memory goes to the driver with the last
// piece of its record.
void DropPiece(Piece* piece);
// All records of pieces that `context` (null: any) on `device` (-1: any) had are about to go.
void ForgetFreshPieces(CUcontext context, int device);

void RaiseTo(std::atomic<uint64_t>* high, uint64_t value);
void ResetPiecesAfterFork();

}  // namespace atp::shim
