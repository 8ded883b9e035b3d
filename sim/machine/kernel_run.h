// SPDX-License-Identifier: Apache-2.0
// A kernel on the compute engine: waves of thread blocks, each waiting for its pages.
//
// When everything is resident the kernel lasts its resident time and changes no list. Otherwise
// each wave faults in batches until all of its pages have been there once: up to 256 faults, taken
// in turn from segments of the wave (one for two multiprocessors, which share a path to the MMU),
// served serially, then replayed. Part of the wave's computing goes on meanwhile (fault_overlap).
// Kernels of several programs take turns in short slices: each goes at an even share of its rate.
// Made and stepped by the scheduler.
#pragma once

#include <span>
#include <vector>

#include "sim/machine/run.h"

namespace atp::sim {

class KernelRun : public Run {
 public:
  KernelRun(World* world, int device, KernelWork work)
      : world_(*world),
        lock_(world->locks[CurrentMember()]),
        device_(device),
        work_(std::move(work)) {}
  ~KernelRun() override { CountComputing(false); }

  Time Step(Time now) override;
  Time PagesLost(Time now, Time wake) override;

 private:
  enum class State { kNew, kComputing, kFaulting };
  struct WaveBlock {
    Block* block = nullptr;
    uint64_t slot = 0;
    PageMask todo;  // asked for in this wave, and not accessed yet
    PageMask reads, writes;
    PageMask depends;  // read before anything else: old content matters
  };
  struct Group {  // the faults of one block in a batch
    uint32_t entry;
    PageMask pages;
  };

  Time Continue(Time now);
  Time Compute(Time now, size_t first, size_t last);
  void CountComputing(bool computes);
  bool AllThere(Time now);
  void Collect(std::span<const PageTouch> pages, uint64_t stamp, std::vector<WaveBlock>* blocks,
               std::vector<uint32_t>* order);
  void BeginWave();
  void LayOutSegments(const std::vector<size_t>& block_ends);
  void Interleave(size_t begin, size_t end, const std::vector<size_t>& block_ends);
  void RebuildWave();
  bool Issue();
  void Ask(uint32_t where);
  bool IsTodo(uint32_t where) const;
  static uint64_t NewStamp();
  Time ServeWave(Time now);
  void Retire(Time now);
  Time FinishWave(Time now);
  std::vector<Group> NextFaults(int* faults);
  Time Batch(Time now);
  bool ServeGroup(Pass* pass, const Group& group);
  Time Boundary(size_t wave) const;
  size_t WaveCount() const { return work_.waves.empty() ? 1 : work_.waves.size(); }
  Time Finish(Time now);

  World& world_;
  SpaceLock& lock_;
  const int device_;
  KernelWork work_;
  State state_ = State::kNew;
  Time started_ = 0;
  Time fault_time_ = 0;
  uint64_t faults_ = 0;
  bool must_look_ = false;  // pages have left the device since everything was there
  size_t wave_ = 0;
  // Computing: waves [wave_, compute_end_) since compute_start_; or the rest of one wave that had
  // faults.
  size_t compute_end_ = 0;
  Time compute_start_ = 0;
  bool is_rest_ = false;
  bool computes_ = false;  // counted among those that do
  Time sharers_ = 1;       // so many programs' kernels computed when it began to
  Ready remote_done_;
  // The wave that faults.
  std::vector<WaveBlock> blocks_;
  std::vector<uint32_t> order_;  // entry of blocks_ * 512 + page, in the order of its segments
  struct Segment {
    size_t cursor = 0;   // before it everything has been accessed
    size_t reached = 0;  // threads have asked for everything before it
    size_t end = 0;
  };
  std::vector<Segment> segments_;
  size_t window_ = 0;             // pages of a segment that its threads can be at
  std::vector<uint32_t> active_;  // entries of blocks_ with something to do
  uint64_t layout_ = 0;
  Time credit_ = 0;  // computing done while batches were served
  Time batch_start_ = 0;
  Ready batch_done_;
  Time batch_cpu_ = 0;
  uint64_t remote_reads_ = 0, remote_writes_ = 0, remote_small_ = 0;  // pages
};

}  // namespace atp::sim
