// SPDX-License-Identifier: Apache-2.0
// The Layered Graph Model (vTensor, JCST 40(6) 2025): layers are launches, nodes are segments of
// tensors, edges are touches. Answers what the online parts ask of a period: who touches a tensor,
// when is it needed next, how does it pass the time between. Built once for a trace; then any
// thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

// What becomes of a tensor between two uses.
enum class GapClass {
  kFreed,         // does not exist: local, after its last use
  kReadOnly,      // no launch of the period writes it: a host copy stays valid
  kDirty,         // must be copied to leave
  kWrittenFirst,  // the next use writes it without reading: its data is of no use any more
};

class LayeredGraph {
 public:
  struct Use {
    uint32_t launch;
    bool reads, writes;
  };
  struct Gap {
    uint32_t from, to;  // uses at both ends; to = n + i is launch i of the next period
    GapClass gap_class;
    uint32_t launches_inside() const { return to - from - 1; }
  };
  struct Segments {
    uint32_t first, count;  // in the order of tensors; the last one of a tensor may be shorter
  };

  // Keeps no reference to the trace. 2 MiB is the driver's unit of eviction.
  explicit LayeredGraph(const Trace& trace, Bytes segment_bytes = 2u << 20);

  uint32_t layers() const { return layers_; }
  uint32_t segments() const { return segments_; }
  Segments SegmentsOf(uint32_t tensor) const;
  // In launch order, one for each launch that touches it.
  std::span<const Use> UsesOf(uint32_t tensor) const;
  // Cyclic: one gap after each use. The one after the last use of a local tensor is kFreed.
  std::span<const Gap> GapsOf(uint32_t tensor) const;
  // Launches from `launch` (exclusive) to the next use of a tensor, counting past the end of the
  // period; 0 if no launch uses it or if it is freed before.
  uint32_t LaunchesUntilUse(uint32_t tensor, uint32_t launch) const;

 private:
  uint32_t layers_ = 0, segments_ = 0;
  std::vector<uint32_t> first_use_;      // per tensor, into uses_ and gaps_; one more at the end
  std::vector<uint32_t> first_segment_;  // the same for segments
  std::vector<Use> uses_;
  std::vector<Gap> gaps_;
};

}  // namespace atp::policy
