// SPDX-License-Identifier: Apache-2.0
// The driver calls that the loop makes: prefetch both ways on streams of our own, events. Errors
// come back as values; the program's error state is not touched. Every call is bracketed so that a
// capture in any thread survives it.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>

#include "shim/executor.h"
#include "shim/mover.h"

namespace atp::shim {

class DriverHints : public HintPort {
 public:
  DriverHints(CUcontext context, int device) : context_(context), device_(device) {}
  bool Open();  // creates the streams; false when the driver refuses

  CUresult Evict(unsigned mover, uint64_t address, uint64_t bytes) override;
  CUresult Drop(unsigned mover, uint64_t address, uint64_t bytes, bool duplicated) override;
  CUresult Discard(unsigned mover, uint64_t address, uint64_t bytes) override;
  static bool DiscardWorks();  // since CUDA 13
  // Ends ReadMostly on an allocation that is about to be written; copies collapse onto the host.
  CUresult EndReadMostly(uint64_t address, uint64_t bytes);
  bool ReadMostlyWorks() const { return read_mostly_works_.load(std::memory_order_relaxed); }
  CUresult Fetch(unsigned stream, uint64_t address, uint64_t bytes, CUevent done) override;
  // With a time, which the movers ask for (DoneAtNs).
  CUevent NewEvent() override { return NewEvent(CU_EVENT_DEFAULT); }
  CUevent NewEvent(unsigned flags);
  uint64_t NowNs() override;
  uint64_t DoneAtNs(CUevent done) override;
  CUresult Record(CUevent event, CUstream stream, bool per_thread) override;
  CUresult StreamWait(CUstream stream, bool per_thread, CUevent event);
  bool Done(CUevent event) override;
  bool Synchronize(CUevent event);  // blocks; false: the driver refused
  double Elapsed(CUevent begin, CUevent end) override;
  ThreadCalls Threads();
  static LaneCalls Lanes();  // null members on a real driver

 private:
  void SetClock();
  CUresult Advise(uint64_t address, uint64_t bytes, bool read_mostly);
  CUresult Prefetch(uint64_t address, uint64_t bytes, bool to_device, CUstream stream);

  CUcontext context_;
  int device_;
  std::array<CUstream, kEvictMovers> evict_streams_{};
  std::array<CUstream, kFetchStreams> fetch_streams_{};
  std::atomic<bool> read_mostly_works_{true};
  // Ties events to NowNs: an event on a stream that is always idle, and when it was recorded.
  CUstream clock_stream_ = nullptr;
  CUevent clock_ = nullptr;
  uint64_t clock_ns_ = 0;
};

}  // namespace atp::shim
