// SPDX-License-Identifier: Apache-2.0
// Freed pieces of stream-ordered memory, by the stream that freed them. In that stream a piece is
// given out again at once, which locks nothing but what belongs to the stream; in another one when
// the stream has passed the free, or when it is made to wait for that. Nothing is recorded at a
// free: the stream is asked when somebody else wants what was freed there. Of the pieces that fit,
// the one with the lowest address serves: equal sequences of requests get equal addresses, whatever
// the order of the frees before.
//
// Any thread, re-entry guard held. Driver calls under a lock here do not wait.
#pragma once

#include <cstdint>
#include <functional>

#include "shim/pieces.h"

namespace atp::shim {

// `stream` as a hook has it, with the current context.
StreamKey KeyOfStream(CUstream stream, bool per_thread, CUcontext context);

// A piece that the program has freed in a stream: its state is kFreed already. What the driver says
// of the stream, and then nothing has changed. `key` empty: every stream may have it at once.
CUresult KeepFreed(Piece* piece, const StreamKey& key);

// A freed piece of PieceSize(bytes) of the pool, live again; null: there is none. Freed in this
// very stream:
Piece* TakeFreedIn(const StreamKey& key, Pool* pool, uint64_t bytes);
// freed in whatever stream, which has passed it:
Piece* TakePassed(Pool* pool, uint64_t bytes);
// not passed: `key`'s stream waits for that on the device:
Piece* TakeAndDepend(const StreamKey& key, Pool* pool, uint64_t bytes);
// larger, by at most an eighth, and freed in this very stream.
Piece* TakeLarger(const StreamKey& key, Pool* pool, uint64_t bytes);

// Gives back pieces that their streams have passed, the oldest first, until at most `keep` bytes of
// the pool are in our hands.
void TrimFreed(Pool* pool, uint64_t keep);

// Forgets the pieces for which `gone` is true; their contexts go with all that is in them.
void ForgetFreed(const std::function<bool(const Piece&)>& gone);
void ForgetStreamOfFreed(CUstream stream);  // before the driver destroys it
void ResetFreedAfterFork();

}  // namespace atp::shim
