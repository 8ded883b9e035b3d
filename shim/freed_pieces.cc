// SPDX-License-Identifier: Apache-2.0
#include "shim/freed_pieces.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>
#include <vector>

#include "shim/capture.h"
#include "shim/own_calls.h"
#include "shim/resolve.h"

namespace atp::shim {

struct StreamMark {
  CUevent event = nullptr;  // null: never passes
  CUcontext context = nullptr;
  std::atomic<uint32_t> uses{0};
};

namespace {

constexpr uint64_t kLegacy = 1, kThread = 1ull << 63;

// Kind of piece first: whoever looks for one elsewhere looks at neighbours.
using ListKey = std::tuple<Pool*, uint64_t, uint64_t, CUcontext>;  // pool, size, stream, context

struct Later {  // for a heap with the lowest address on top
  bool operator()(const Piece* a, const Piece* b) const { return a->address > b->address; }
};

struct List {
  StreamKey key;
  std::vector<Piece*> heap;
};

struct alignas(64) Shelf {
  std::mutex mutex;
  std::map<ListKey, List> lists;
};
constexpr size_t kShelves = 32;

Shelf* Shelves() {  // never destroyed: hooks may run until the very end
  static Shelf* shelves = new Shelf[kShelves];
  return shelves;
}

Shelf& ShelfOf(const StreamKey& key) {
  const uint64_t mixed =
      (key.number ^ reinterpret_cast<uintptr_t>(key.context) << 1) * 0x9E3779B97F4A7C15u;
  return Shelves()[mixed >> 59];
}

ListKey ListOf(const StreamKey& key, Pool* pool, uint64_t size) {
  return {pool, size, key.number, key.context};
}

std::atomic<uint64_t> frees{0};

constinit std::mutex events_mutex;
std::map<CUcontext, std::vector<CUevent>>& Events() {  // to be used again
  static auto* events = new std::map<CUcontext, std::vector<CUevent>>;
  return *events;
}

// Recorded now, in the stream.
StreamMark* NewMark(const StreamKey& key) {
  auto* mark = new StreamMark{nullptr, key.context};
  if (CaptureOpen() && IsCapturing(key.stream, false)) return mark;
  WithContext current(key.context);
  Relaxed relaxed;
  CUevent event = nullptr;
  {
    std::lock_guard lock(events_mutex);
    std::vector<CUevent>& spare = Events()[key.context];
    if (!spare.empty()) {
      event = spare.back();
      spare.pop_back();
    }
  }
  if (event == nullptr && real().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return mark;
  }
  if (real().cuEventRecord(event, key.stream) == CUDA_SUCCESS) mark->event = event;
  return mark;
}

void SetMark(Piece* piece, StreamMark* mark) {
  mark->uses.fetch_add(1, std::memory_order_relaxed);
  piece->mark = mark;
}

void TakeMarkOff(Piece* piece, bool context_lives = true) {
  StreamMark* mark = std::exchange(piece->mark, nullptr);
  if (mark == nullptr || mark->uses.fetch_sub(1) > 1) return;
  if (context_lives && mark->event != nullptr) {
    std::lock_guard lock(events_mutex);
    Events()[mark->context].push_back(mark->event);
  }
  delete mark;
}

bool MarkPassed(const StreamMark& mark) {
  if (mark.event == nullptr) return false;
  Relaxed relaxed;
  return real().cuEventQuery(mark.event) == CUDA_SUCCESS;
}

bool StreamIsIdle(const StreamKey& key) {
  if (real().cuStreamQuery == nullptr) return false;
  WithContext current(key.context);
  Relaxed relaxed;
  return real().cuStreamQuery(key.stream) == CUDA_SUCCESS;
}

// What is freed in a list has been passed when its stream is idle, or has passed a mark that was
// recorded behind the free. Pieces without a mark get one, for the next time that somebody asks.
class Passing {
 public:
  explicit Passing(const List& list)
      : list_(list),
        idle_(list.key.number != 0 && !(list.key.number & kThread) && !CaptureOpen() &&
              StreamIsIdle(list.key)) {}
  bool operator()(Piece* piece) {
    if (idle_ || (piece->mark == nullptr && list_.key.number == 0)) return true;
    if (CaptureOpen()) return false;  // what is asked or recorded now may become part of it
    if (piece->mark == nullptr) SetMark(piece, Mark());
    return MarkPassed(*piece->mark);
  }
  bool all() const { return idle_; }
  // Recorded behind all that is in the list, and not before it was asked for.
  StreamMark* Mark() { return mark_ != nullptr ? mark_ : mark_ = NewMark(list_.key); }

 private:
  const List& list_;
  const bool idle_;
  StreamMark* mark_ = nullptr;
};

void CountFreed(const Piece& piece, bool freed) {
  Device* device = DeviceOf(piece.record->device);
  Pool* pool = piece.pool.load(std::memory_order_relaxed);
  if (freed) {
    pool->used.fetch_sub(piece.size, std::memory_order_relaxed);
    if (device != nullptr) device->idle.fetch_add(piece.size, std::memory_order_relaxed);
  } else if (device != nullptr) {
    device->idle.fetch_sub(piece.size, std::memory_order_relaxed);
  }
}

void Put(List* list, Piece* piece) {
  list->heap.push_back(piece);
  std::push_heap(list->heap.begin(), list->heap.end(), Later{});
}

// The last one takes the place, and goes up or down from there.
void Remove(List* list, size_t at) {
  std::vector<Piece*>& heap = list->heap;
  heap[at] = heap.back();
  heap.pop_back();
  if (at == heap.size()) return;
  for (size_t above; at > 0 && Later{}(heap[above = (at - 1) / 2], heap[at]); at = above) {
    std::swap(heap[above], heap[at]);
  }
  while (true) {
    size_t least = at;
    for (const size_t below : {2 * at + 1, 2 * at + 2}) {
      if (below < heap.size() && Later{}(heap[least], heap[below])) least = below;
    }
    if (least == at) return;
    std::swap(heap[least], heap[at]);
    at = least;
  }
}

Piece* MakeLive(Piece* piece, uint64_t bytes) {
  TakeMarkOff(piece);
  CountFreed(*piece, false);
  piece->bytes.store(bytes, std::memory_order_relaxed);
  piece->state.store(PieceState::kLive, std::memory_order_release);
  return piece;
}

Piece* PopLowest(List* list, uint64_t bytes) {
  std::pop_heap(list->heap.begin(), list->heap.end(), Later{});
  Piece* piece = list->heap.back();
  list->heap.pop_back();
  return MakeLive(piece, bytes);
}

// The lowest one that has been passed, of not too many.
Piece* PopPassed(List* list, uint64_t bytes) {
  constexpr size_t kMostTried = 32;
  Passing passing(*list);
  if (passing.all()) return PopLowest(list, bytes);
  size_t best = SIZE_MAX;
  for (size_t i = 0; i < std::min(list->heap.size(), kMostTried); ++i) {
    const bool lower = best == SIZE_MAX || list->heap[i]->address < list->heap[best]->address;
    if (lower && passing(list->heap[i])) best = i;
  }
  if (best == SIZE_MAX) return nullptr;
  Piece* piece = list->heap[best];
  Remove(list, best);
  return MakeLive(piece, bytes);
}

// Calls visit(List*) for the pool's lists of pieces of this size that are not empty, shelf after
// shelf, until it gives a piece.
template <typename Visit>
Piece* Find(Pool* pool, uint64_t size, Visit visit) {
  for (size_t i = 0; i < kShelves; ++i) {
    Shelf& shelf = Shelves()[i];
    std::lock_guard lock(shelf.mutex);
    for (auto at = shelf.lists.lower_bound({pool, size, 0, nullptr});
         at != shelf.lists.end() && std::get<0>(at->first) == pool &&
         std::get<1>(at->first) == size;
         ++at) {
      if (at->second.heap.empty()) continue;
      if (Piece* piece = visit(&at->second)) return piece;
    }
  }
  return nullptr;
}

}  // namespace

StreamKey KeyOfStream(CUstream stream, bool per_thread, CUcontext context) {
  static std::atomic<uint64_t> threads{0};
  thread_local constinit uint64_t number = 0;
  if (stream == nullptr) stream = per_thread ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  if (stream == CU_STREAM_LEGACY) return {kLegacy, stream, context};
  if (stream != CU_STREAM_PER_THREAD) {
    return {reinterpret_cast<uintptr_t>(stream), stream, context};
  }
  if (number == 0) number = ++threads;
  return {kThread | number, stream, context};
}

CUresult KeepFreed(Piece* piece, const StreamKey& key) {
  Pool* pool = piece->pool.load(std::memory_order_relaxed);
  // Nobody else can record behind a free in a thread's own stream.
  StreamMark* mark = key.number & kThread ? NewMark(key) : nullptr;
  if (mark != nullptr) SetMark(piece, mark);
  if (mark != nullptr && mark->event == nullptr) {
    TakeMarkOff(piece);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Shelf& shelf = ShelfOf(key);
  std::lock_guard lock(shelf.mutex);
  const auto [list, added] = shelf.lists.try_emplace(ListOf(key, pool, piece->size), List{key, {}});
  if (added && key.number != 0 && mark == nullptr && !CaptureOpen() &&
      real().cuStreamQuery != nullptr) {
    // Is there such a stream?
    WithContext current(key.context);
    const CUresult result = real().cuStreamQuery(key.stream);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
      shelf.lists.erase(list);
      return result;
    }
  }
  piece->freed_in = key;
  piece->freed = frees.fetch_add(1, std::memory_order_relaxed) + 1;
  CountFreed(*piece, true);
  Put(&list->second, piece);
  return CUDA_SUCCESS;
}

Piece* TakeFreedIn(const StreamKey& key, Pool* pool, uint64_t bytes) {
  Shelf& shelf = ShelfOf(key);
  std::lock_guard lock(shelf.mutex);
  const auto list = shelf.lists.find(ListOf(key, pool, PieceSize(bytes)));
  if (list == shelf.lists.end() || list->second.heap.empty()) return nullptr;
  return PopLowest(&list->second, bytes);
}

Piece* TakePassed(Pool* pool, uint64_t bytes) {
  return Find(pool, PieceSize(bytes), [&](List* list) { return PopPassed(list, bytes); });
}

Piece* TakeAndDepend(const StreamKey& key, Pool* pool, uint64_t bytes) {
  return Find(pool, PieceSize(bytes), [&](List* list) -> Piece* {
    Piece* piece = list->heap.front();
    if (piece->mark == nullptr && list->key.number != 0) {
      SetMark(piece, Passing(*list).Mark());
    }
    if (piece->mark != nullptr) {
      Relaxed relaxed;
      const bool waits =
          piece->mark->event != nullptr &&
          real().cuStreamWaitEvent(key.stream, piece->mark->event, 0) == CUDA_SUCCESS;
      if (!waits) return nullptr;
    }
    return PopLowest(list, bytes);
  });
}

Piece* TakeLarger(const StreamKey& key, Pool* pool, uint64_t bytes) {
  const uint64_t size = PieceSize(bytes), most = size + size / 8;
  Shelf& shelf = ShelfOf(key);
  std::lock_guard lock(shelf.mutex);
  for (auto at = shelf.lists.upper_bound(ListOf(key, pool, size));
       at != shelf.lists.end() && std::get<0>(at->first) == pool && std::get<1>(at->first) <= most;
       ++at) {
    const StreamKey& other = at->second.key;
    const bool same = other.number == key.number && other.context == key.context;
    if (same && !at->second.heap.empty()) return PopLowest(&at->second, bytes);
  }
  return nullptr;
}

void TrimFreed(Pool* pool, uint64_t keep) {
  if (pool->reserved.load(std::memory_order_relaxed) <= keep) return;
  std::vector<Piece*> passed;
  for (size_t i = 0; i < kShelves; ++i) {
    Shelf& shelf = Shelves()[i];
    std::lock_guard lock(shelf.mutex);
    for (auto at = shelf.lists.lower_bound({pool, 0, 0, nullptr});
         at != shelf.lists.end() && std::get<0>(at->first) == pool;) {
      List& list = at->second;
      Passing passing(list);
      const auto gone = std::partition(list.heap.begin(), list.heap.end(),
                                       [&](Piece* piece) { return !passing(piece); });
      passed.insert(passed.end(), gone, list.heap.end());
      list.heap.erase(gone, list.heap.end());
      std::make_heap(list.heap.begin(), list.heap.end(), Later{});
      at = list.heap.empty() ? shelf.lists.erase(at) : std::next(at);
    }
  }
  std::sort(passed.begin(), passed.end(),
            [](const Piece* a, const Piece* b) { return a->freed < b->freed; });
  for (Piece* piece : passed) {
    TakeMarkOff(piece);
    if (pool->reserved.load(std::memory_order_relaxed) > keep) {
      CountFreed(*piece, false);
      DropPiece(piece);
      continue;
    }
    piece->freed_in = StreamKey{};  // everybody may have it
    Shelf& shelf = ShelfOf(piece->freed_in);
    std::lock_guard lock(shelf.mutex);
    Put(&shelf.lists[ListOf(piece->freed_in, pool, piece->size)], piece);
  }
}

void ForgetFreed(const std::function<bool(const Piece&)>& gone) {
  for (size_t i = 0; i < kShelves; ++i) {
    Shelf& shelf = Shelves()[i];
    std::lock_guard lock(shelf.mutex);
    for (auto& [key, list] : shelf.lists) {
      std::erase_if(list.heap, [&](Piece* piece) {
        if (!gone(*piece)) return false;
        TakeMarkOff(piece, /*context_lives=*/false);
        CountFreed(*piece, false);
        piece->pool.load(std::memory_order_relaxed)->reserved -= piece->size;
        return true;
      });
      std::make_heap(list.heap.begin(), list.heap.end(), Later{});
    }
  }
  std::lock_guard lock(events_mutex);
  Events().clear();  // which of them are gone is not worth knowing
}

// Its handle may come back for another stream.
void ForgetStreamOfFreed(CUstream stream) {
  std::vector<Piece*> moved;
  for (size_t i = 0; i < kShelves; ++i) {
    Shelf& shelf = Shelves()[i];
    std::lock_guard lock(shelf.mutex);
    for (auto at = shelf.lists.begin(); at != shelf.lists.end();) {
      List& list = at->second;
      if (list.key.stream != stream) {
        ++at;
        continue;
      }
      Passing passing(list);
      for (Piece* piece : list.heap) {
        if (piece->mark == nullptr) SetMark(piece, passing.Mark());
      }
      moved.insert(moved.end(), list.heap.begin(), list.heap.end());
      at = shelf.lists.erase(at);
    }
  }
  for (Piece* piece : moved) {
    piece->freed_in = StreamKey{};
    Shelf& shelf = ShelfOf(piece->freed_in);
    std::lock_guard lock(shelf.mutex);
    Put(&shelf.lists[ListOf(piece->freed_in, piece->pool.load(), piece->size)], piece);
  }
}

void ResetFreedAfterFork() {
  new (&events_mutex) std::mutex;
  for (size_t i = 0; i < kShelves; ++i) new (&Shelves()[i].mutex) std::mutex;
}

}  // namespace atp::shim
