// SPDX-License-Identifier: Apache-2.0
#include "policy/raw_trace.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "policy/period.h"

namespace atp::policy {
namespace {

uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// One end of a touch. `key` says who touches and how; equal sums of keys mean the same touches.
struct Edge {
  Bytes at;
  uint64_t key;
  bool begins;
};

struct Piece {
  Bytes begin, end;
  uint32_t tensor;
};

// Pieces of one allocation: between neighbouring edges, joined while touched by the same launches.
std::vector<Piece> Pieces(std::vector<Edge>& edges) {
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  std::vector<Piece> pieces;
  uint64_t sum = 0, last_sum = 0;
  int64_t open = 0;
  for (size_t i = 0; i < edges.size();) {
    const Bytes at = edges[i].at;
    for (; i < edges.size() && edges[i].at == at; ++i) {
      sum += edges[i].begins ? edges[i].key : 0 - edges[i].key;
      open += edges[i].begins ? 1 : -1;
    }
    if (open == 0 || i == edges.size()) continue;
    const Bytes next = edges[i].at;
    if (!pieces.empty() && pieces.back().end == at && last_sum == sum) {
      pieces.back().end = next;
    } else {
      pieces.push_back({at, next, 0});
    }
    last_sum = sum;
  }
  return pieces;
}

uint64_t SignatureOf(const RawTrace::Launch& launch) {
  if (launch.signature != 0) return launch.signature;
  uint64_t hash = 0x9E3779B97F4A7C15ull;
  for (char c : launch.name) hash = Mix(hash ^ static_cast<unsigned char>(c));
  for (const auto& touch : launch.touches) {
    hash = Mix(hash ^ touch.offset) + Mix(hash + touch.bytes) + static_cast<uint64_t>(touch.access);
  }
  return hash;
}

class Cutter {
 public:
  Cutter(const RawTrace& raw, LaunchRange range, const ToPeriodOptions& options)
      : raw_(raw), range_(range), options_(options), pieces_(raw.allocations.size()) {}

  Trace Cut() {
    trace_.name = raw_.name;
    trace_.source = raw_.source;
    trace_.device_bytes = raw_.device_bytes;
    trace_.host_bytes = raw_.host_bytes;
    trace_.link = raw_.link;
    trace_.extra = raw_.extra;
    range_.end = std::min<uint64_t>(range_.end, raw_.launches.size());
    CutAllocations();
    for (uint64_t k = range_.begin; k < range_.end; ++k) {
      if (Wanted(raw_.launches[k].device)) AddLaunch(raw_.launches[k]);
    }
    return std::move(trace_);
  }

 private:
  bool Wanted(int device) const { return options_.device < 0 || device == options_.device; }
  bool Wanted(const RawTrace::Touch& touch) const {
    return touch.bytes > 0 && touch.allocation < raw_.allocations.size() &&
           Wanted(raw_.allocations[touch.allocation].device);
  }

  void CutAllocations() {
    std::vector<std::vector<Edge>> edges(raw_.allocations.size());
    for (uint64_t k = range_.begin; k < range_.end; ++k) {
      if (!Wanted(raw_.launches[k].device)) continue;
      for (const auto& touch : raw_.launches[k].touches) {
        if (!Wanted(touch)) continue;
        const uint64_t key = Mix(k * 4 + static_cast<uint64_t>(touch.access) + 1);
        edges[touch.allocation].push_back({touch.offset, key, true});
        edges[touch.allocation].push_back({touch.offset + touch.bytes, key, false});
      }
    }
    for (uint32_t a = 0; a < edges.size(); ++a) {
      pieces_[a] = Pieces(edges[a]);
      const auto& allocation = raw_.allocations[a];
      // What a period allocates just before its first launch it frees at its end at the latest;
      // what is older and goes at the end goes with the program.
      const bool older = allocation.at < range_.begin && allocation.freed_at >= range_.end;
      const bool outlives = allocation.at == range_.begin && allocation.freed_at > range_.end;
      for (Piece& piece : pieces_[a]) {
        piece.tensor = static_cast<uint32_t>(trace_.tensors.size());
        Tensor tensor;
        tensor.id = std::to_string(allocation.id) + "+" + std::to_string(piece.begin);
        tensor.bytes = piece.end - piece.begin;
        tensor.kind = "other";
        tensor.global = older || outlives;
        trace_.tensors.push_back(std::move(tensor));
      }
    }
  }

  void AddLaunch(const RawTrace::Launch& raw) {
    Launch launch;
    launch.name = raw.name;
    launch.seconds = raw.seconds;
    launch.stream = raw.stream;
    launch.extra = raw.extra;
    for (const auto& touch : raw.touches) {
      if (!Wanted(touch)) continue;
      const auto& pieces = pieces_[touch.allocation];
      auto piece = std::lower_bound(pieces.begin(), pieces.end(), touch.offset,
                                    [](const Piece& p, Bytes offset) { return p.begin < offset; });
      const bool writes = touch.access != RawTrace::Access::kRead;
      const bool reads = touch.access == RawTrace::Access::kRead ||
                         touch.access == RawTrace::Access::kReadWrite ||
                         (touch.access == RawTrace::Access::kWrite && options_.partial_writes_read);
      for (; piece != pieces.end() && piece->begin < touch.offset + touch.bytes; ++piece) {
        if (reads) launch.reads.push_back(piece->tensor);
        if (writes) launch.writes.push_back(piece->tensor);
      }
    }
    for (auto* list : {&launch.reads, &launch.writes}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    trace_.launches.push_back(std::move(launch));
  }

  const RawTrace& raw_;
  LaunchRange range_;
  const ToPeriodOptions& options_;
  std::vector<std::vector<Piece>> pieces_;
  Trace trace_;
};

}  // namespace

std::optional<LaunchRange> FindMainPeriod(const RawTrace& raw) {
  struct Phase {
    double seconds = 0;  // of all its whole periods
    LaunchRange last;
  };
  std::map<uint32_t, Phase> phases;
  PeriodDetector detector;
  double lap_seconds = 0;
  for (uint64_t k = 0; k < raw.launches.size(); ++k) {
    const PeriodState state = detector.Feed(SignatureOf(raw.launches[k]));
    if (!state.locked || state.position == 0) lap_seconds = 0;
    lap_seconds += raw.launches[k].seconds;
    if (!state.locked || !state.whole || state.position + 1 != state.length) continue;
    Phase& phase = phases[state.phase];
    phase.seconds += lap_seconds;
    phase.last = {k + 1 - state.length, k + 1};
  }
  const auto main = std::max_element(
      phases.begin(), phases.end(),
      [](const auto& a, const auto& b) { return a.second.seconds < b.second.seconds; });
  if (main == phases.end()) return std::nullopt;
  return main->second.last;
}

Trace ToPeriod(const RawTrace& raw, LaunchRange range, const ToPeriodOptions& options) {
  return Cutter(raw, range, options).Cut();
}

}  // namespace atp::policy
