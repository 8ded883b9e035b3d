// SPDX-License-Identifier: Apache-2.0
#include "policy/graph.h"

#include <algorithm>

namespace atp::policy {
namespace {

std::vector<std::vector<LayeredGraph::Use>> CollectUses(const Trace& trace) {
  std::vector<std::vector<LayeredGraph::Use>> uses(trace.tensors.size());
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    auto touch = [&](uint32_t t) -> LayeredGraph::Use& {
      if (uses[t].empty() || uses[t].back().launch != k) uses[t].push_back({k, false, false});
      return uses[t].back();
    };
    for (uint32_t t : trace.launches[k].reads) {
      if (t < uses.size()) touch(t).reads = true;
    }
    for (uint32_t t : trace.launches[k].writes) {
      if (t < uses.size()) touch(t).writes = true;
    }
  }
  return uses;
}

GapClass Classify(bool global, bool last, bool ever_written, const LayeredGraph::Use& next) {
  if (last && !global) return GapClass::kFreed;
  if (next.writes && !next.reads) return GapClass::kWrittenFirst;
  return ever_written ? GapClass::kDirty : GapClass::kReadOnly;
}

}  // namespace

LayeredGraph::LayeredGraph(const Trace& trace, Bytes segment_bytes)
    : layers_(static_cast<uint32_t>(trace.launches.size())) {
  const auto uses = CollectUses(trace);
  for (uint32_t t = 0; t < uses.size(); ++t) {
    first_use_.push_back(static_cast<uint32_t>(uses_.size()));
    first_segment_.push_back(segments_);
    segments_ +=
        static_cast<uint32_t>((trace.tensors[t].bytes + segment_bytes - 1) / segment_bytes);
    const bool written =
        std::any_of(uses[t].begin(), uses[t].end(), [](const Use& use) { return use.writes; });
    for (size_t i = 0; i < uses[t].size(); ++i) {
      const bool last = i + 1 == uses[t].size();
      const Use& next = last ? uses[t].front() : uses[t][i + 1];
      uses_.push_back(uses[t][i]);
      gaps_.push_back({uses[t][i].launch, next.launch + (last ? layers_ : 0),
                       Classify(trace.tensors[t].global, last, written, next)});
    }
  }
  first_use_.push_back(static_cast<uint32_t>(uses_.size()));
  first_segment_.push_back(segments_);
}

LayeredGraph::Segments LayeredGraph::SegmentsOf(uint32_t tensor) const {
  return {first_segment_[tensor], first_segment_[tensor + 1] - first_segment_[tensor]};
}

std::span<const LayeredGraph::Use> LayeredGraph::UsesOf(uint32_t tensor) const {
  return std::span(uses_).subspan(first_use_[tensor], first_use_[tensor + 1] - first_use_[tensor]);
}

std::span<const LayeredGraph::Gap> LayeredGraph::GapsOf(uint32_t tensor) const {
  return std::span(gaps_).subspan(first_use_[tensor], first_use_[tensor + 1] - first_use_[tensor]);
}

uint32_t LayeredGraph::LaunchesUntilUse(uint32_t tensor, uint32_t launch) const {
  const auto uses = UsesOf(tensor);
  if (uses.empty()) return 0;
  const auto next = std::upper_bound(uses.begin(), uses.end(), launch,
                                     [](uint32_t k, const Use& use) { return k < use.launch; });
  if (next != uses.end()) return next->launch - launch;
  if (GapsOf(tensor).back().gap_class == GapClass::kFreed) return 0;
  return uses.front().launch + layers_ - launch;
}

}  // namespace atp::policy
