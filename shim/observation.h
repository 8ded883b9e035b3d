// SPDX-License-Identifier: Apache-2.0
// One launch, copy or set on its way to the driver: collects what it touches of our memory, in a
// fixed array on the stack, and shows it to the loop around the driver call. Built only while
// Watching(): otherwise hooks call the driver at once. No heap, no lock, no system call of its own.
#pragma once

#include <algorithm>
#include <bit>
#include <new>
#include <span>

#include "shim/capture.h"
#include "shim/loop.h"
#include "shim/owing.h"
#include "shim/tracker.h"

namespace atp::shim {

class Observation {
 public:
  // More touches than this are counted, not kept: the loop then sees the first ones.
  static constexpr size_t kMaxTouches = shim::kMaxTouches;

  Observation(uint64_t identity, const char* name, CUstream stream, bool per_thread) {
    view_.name = name;
    view_.stream = stream;
    view_.per_thread = per_thread;
    view_.identity = identity;
    Mix(identity);
  }

  void set_arguments(const LaunchArguments& arguments) { view_.arguments = arguments; }

  // The signature is made of what repeats when the program repeats, and is the same in another run
  // of it: the function (FunctionInfo::identity), and for each pointer the allocation's slot and
  // the granule in it. Not of scalars, a step counter would make every period new; nor of geometry,
  // by which steps of other lengths (sentences, batches) would be other periods, though they move
  // the same memory.
  void Mix(uint64_t value) {
    signature_ = (signature_ ^ value) * kFactor;
    signature_ ^= signature_ >> 29;
  }

  // A touch if the address is in memory of ours; otherwise nothing. bytes 0 = extent unknown.
  void Touch(uint64_t address, uint64_t bytes, bool reads, bool writes) {
    Record* record = g_tracker.Find(address);
    if (record == nullptr) return;
    const uint64_t offset = address - record->address;
    Mix(IdentityOf(*record, offset));
    if (bytes > kGranule) Mix(bytes / kGranule);
    if (count_ == kMaxTouches) {
      ++dropped_;
      return;
    }
    struct Touch* touch = At(count_++);
    touch->allocation = record;
    touch->offset = offset;
    touch->bytes = bytes;
    touch->reads = reads;
    touch->writes = writes;
    AddUse(record, writes);
  }

  // Touches of unknown extent by each of many words that points into memory of ours. What a scan
  // changes is its own until it ends, and the hash is made at the end, so that the compiler can
  // hold all of it in registers and no word waits for the hash of the one before it.
  class Scan {
   public:
    explicit Scan(Observation* observation)
        : observation_(*observation),
          begin_(observation->Storage() + observation->count_),
          next_(begin_),
          end_(observation->Storage() + kMaxTouches) {}
    ~Scan() {
      if (next_ == begin_ && dropped_ == 0) return;
      // What has been named lately, by its slot; another one may be in its place.
      constexpr size_t kPlaces = 8;
      const Allocation *written[kPlaces] = {}, *read[kPlaces] = {};
      uint64_t sum = dropped_sum_;
      for (const struct Touch* t = begin_; t != next_; ++t) {
        Allocation* const allocation = t->allocation;
        sum = std::rotl(sum, 7) + (IdentityOf(*allocation, t->offset) + 1) * kFactor;
        const size_t place = allocation->slot % kPlaces;
        if (written[place] == allocation) continue;
        if (!t->writes && read[place] == allocation) continue;
        observation_.AddUse(allocation, t->writes);
        (t->writes ? written : read)[place] = allocation;
      }
      observation_.Mix(sum);
      observation_.count_ += static_cast<size_t>(next_ - begin_);
      observation_.dropped_ += dropped_;
    }
    Scan(const Scan&) = delete;
    Scan& operator=(const Scan&) = delete;

    void Touch(uint64_t word, bool reads, bool writes) {
      Record* record = finder_.Find(word);
      if (record == nullptr) return;
      const uint64_t offset = word - record->address;
      if (next_ == end_) [[unlikely]] {
        ++dropped_;
        dropped_sum_ = std::rotl(dropped_sum_, 7) + (IdentityOf(*record, offset) + 1) * kFactor;
        return;
      }
      new (next_++) shim::Touch{record, offset, 0, reads, writes};
    }

   private:
    Observation& observation_;
    struct Touch* const begin_;
    struct Touch* next_;
    struct Touch* const end_;
    Tracker::Finder finder_{g_tracker};
    size_t dropped_ = 0;
    uint64_t dropped_sum_ = 0;
  };

  uint64_t signature() const { return signature_; }
  std::span<const struct Touch> touches() const {
    return {reinterpret_cast<const struct Touch*>(storage_), count_};
  }
  size_t touch_count() const { return count_; }
  // Its allocations, each at least once; none: too many to be counted.
  std::span<const Use> uses() const { return {uses_, use_count_ <= kMaxUses ? use_count_ : 0}; }
  size_t dropped() const { return dropped_; }

  // Submits the call with the loop before and after it. `blocks`: the program's thread will wait
  // for the stream inside the call.
  template <typename Call>
  CUresult Submit(bool blocks, Call call) {
    view_.signature = signature_;
    view_.touches = reinterpret_cast<const struct Touch*>(storage_);
    view_.touch_count = count_;
    view_.uses = uses().data();
    view_.use_count = uses().size();
    if (CaptureOpen()) [[unlikely]]
      view_.capturing = IsCapturing(view_.stream, view_.per_thread);
    const CUresult refused = LoopBeforeLaunch(view_);
    if (refused != CUDA_SUCCESS) [[unlikely]]
      return refused;
    if (blocks && !view_.capturing) {
      LoopBeforeWait(Wait::kStream, view_.stream, view_.per_thread, nullptr);
    }
    const CUresult result = call();
    if (result != CUDA_SUCCESS && Owing()) [[unlikely]]
      LoopPay(nullptr);  // what it should have made has not been made
    LoopAfterLaunch(view_);
    return result;
  }

 private:
  static constexpr uint64_t kFactor = 0x9E3779B97F4A7C15u;
  static constexpr size_t kMaxUses = 64;

  void AddUse(Allocation* allocation, bool writes) {
    if (use_count_ < kMaxUses) [[likely]] {
      new (&uses_[use_count_]) Use{allocation, writes};
    }
    use_count_ = std::min(use_count_ + 1, kMaxUses + 1);  // one more: too many to be counted
  }

  struct Touch* Storage() {
    return reinterpret_cast<struct Touch*>(storage_);
  }
  struct Touch* At(size_t index) {
    return new (Storage() + index) struct Touch;
  }
  // By granule: a pointer that walks through a buffer (a table of positions, a growing cache) is
  // the same touch for as long as it is in the same granule.
  static uint64_t IdentityOf(const Allocation& allocation, uint64_t offset) {
    return (static_cast<uint64_t>(allocation.slot) << 44) ^ (offset / kGranule);
  }

  LaunchView view_;
  uint64_t signature_ = 0x51ED270B;
  size_t count_ = 0, dropped_ = 0, use_count_ = 0;
  union {  // not initialised
    Use uses_[kMaxUses];
  };
  alignas(struct Touch) unsigned char storage_[kMaxTouches * sizeof(struct Touch)];
};

}  // namespace atp::shim
