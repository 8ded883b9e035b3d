// SPDX-License-Identifier: Apache-2.0
// Stream-ordered memory (cuMemAllocAsync, pools) on managed memory. A piece is valid from the call
// on, which is more than stream order promises; freed in a stream, it is given out again at once in
// that stream, and elsewhere when that stream has passed the free. Freed pieces are kept for reuse
// up to a sixth of what the pool has had in use, since giving managed memory back waits for the
// device.
//
// The driver's pool serves what is small (as long as placement leaves small memory plain), what a
// graph records, pools made for export, and everything when ATP_DISABLE=pools. Any thread, re-entry
// guard held. A request that its own stream has freed memory for takes only that stream's lock
// (freed_pieces.h); new memory takes one of all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/device.h"
#include "shim/tracker.h"

namespace atp::shim {

// `pool` null: the device's current one. CUDA_ERROR_NOT_SUPPORTED: the driver should serve it.
// `*packed`: then as one of the small ones.
CUresult PlaceInOrder(CUdeviceptr* address, size_t bytes, CUmemoryPool pool, CUstream stream,
                      bool per_thread, bool* packed);
// Of an address in a record that has pieces. A second free is what the driver calls it.
CUresult ReleasePieceInOrder(Record* record, CUdeviceptr address, CUstream stream, bool per_thread);
CUresult ReleasePiece(Record* record, CUdeviceptr address);  // a plain free

// The piece around an address of a pooled record, as the program asked for it.
bool PieceAround(uint64_t address, uint64_t* start, uint64_t* bytes, CUmemoryPool* pool);

// What the pool's own calls tell us.
void NotePool(CUmemoryPool pool, const CUmemPoolProps& props);
void TrimPieces(CUmemoryPool pool, uint64_t keep);
void RetirePool(CUmemoryPool pool);
// The driver's answer, with ours added. An attribute that was set: a high-water mark goes back, and
// what the program allows in reuse is looked at again.
void AddPoolNumber(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t* value);
void NotePoolAttribute(CUmemoryPool pool, CUmemPool_attribute attribute);

void ForgetPiecesOf(CUcontext context, int device);  // the context goes with its memory
void ForgetStreamOfPieces(CUstream stream);          // its handle may come back for another one
void ResetPoolsAfterFork();

}  // namespace atp::shim
