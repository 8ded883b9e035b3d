// SPDX-License-Identifier: Apache-2.0
// A copy or set on a copy engine, in pieces of at most 2 MiB.
//
// Copy engines fault on managed pages that they cannot access, one page at a time; each fault is
// served before the next is seen (uvm_gpu_non_replayable_faults.c in NVIDIA/open-gpu-kernel-modules
// 595.45.04). Made and stepped by the scheduler.
#pragma once

#include "sim/machine/run.h"

namespace atp::sim {

class CopyRun : public Run {
 public:
  CopyRun(World* world, int device, const CopyWork& work)
      : world_(*world), lock_(world->locks[CurrentMember()]), device_(device), work_(work) {}

  Time Step(Time now) override;

 private:
  Time StartPiece(Time now);
  bool Reach(Pass* pass, uint64_t address, uint64_t bytes, bool write, uint64_t* remote_bytes);
  void Move(Time now, Time start, uint64_t bytes, uint64_t remote_in, uint64_t remote_out);
  void PushLink(Time now, Time start, Direction direction, uint64_t bytes, bool staged);

  World& world_;
  SpaceLock& lock_;
  const int device_;
  const CopyWork work_;
  bool started_ = false;
  uint64_t offset_ = 0;  // bytes done or on their way
  Ready ready_;          // end of the piece on its way
};

}  // namespace atp::sim
