// SPDX-License-Identifier: Apache-2.0
#include "policy/layout_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace atp::policy {
namespace {

constexpr double kTick = 5e-9;  // seconds; times closer than this are the same time

Move ToMove(const Layout::Piece& piece, const InactiveInterval& interval, size_t n, double period,
            Move::Kind kind, bool copies) {
  Move move;
  move.kind = kind;
  move.tensor = interval.tensor;
  move.offset = piece.offset, move.bytes = piece.bytes;
  move.after = interval.last_use;
  move.before = static_cast<uint32_t>(interval.next_use % n);
  // A move starts in [0, period), and what takes no time in (0, period]: gone before the next
  // begins.
  const bool instant = piece.end <= piece.start;
  const double laps = instant ? std::ceil(piece.start / period - 1e-12) - 1
                              : std::floor(piece.start / period + 1e-12);
  move.start = std::max(0.0, piece.start - laps * period);
  move.end = move.start + (piece.end - piece.start);
  if (std::abs(move.end - period) <= kTick) move.end = period;
  move.copies = copies;
  return move;
}

using Ranges = std::vector<std::pair<Bytes, Bytes>>;  // begin, end; sorted and disjoint

Ranges Joined(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges joined;
  for (const auto& range : ranges) {
    if (!joined.empty() && range.first <= joined.back().second) {
      joined.back().second = std::max(joined.back().second, range.second);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

Ranges Common(const Ranges& a, const Ranges& b) {
  Ranges common;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const Bytes from = std::max(a[i].first, b[j].first), to = std::min(a[i].second, b[j].second);
    if (from < to) common.push_back({from, to});
    a[i].second < b[j].second ? ++i : ++j;
  }
  return common;
}

// What is on the device at time 0: every tensor that waits there across the end of the period, less
// what has left before it and not arrived again.
std::vector<Plan::Piece> InitiallyResident(const Trace& trace, const Lifetimes& life,
                                           const Layout& layout) {
  const size_t n = trace.launches.size();
  const double end = layout.period + kTick;
  std::vector<Ranges> left(life.intervals.size()), coming(life.intervals.size());
  for (const auto& p : layout.out) {
    if (p.end <= end) left[p.interval].push_back({p.offset, p.offset + p.bytes});
  }
  for (const auto& p : layout.in) {
    if (p.end > end) coming[p.interval].push_back({p.offset, p.offset + p.bytes});
  }
  std::vector<Ranges> away(trace.tensors.size());
  std::vector<bool> used(trace.tensors.size(), false);
  for (size_t i = 0; i < life.intervals.size(); ++i) {
    if (life.intervals[i].next_use < n) continue;
    away[life.intervals[i].tensor] = Common(Joined(left[i]), Joined(coming[i]));
  }
  for (const Launch& launch : trace.launches) {
    for (const auto* list : {&launch.reads, &launch.writes}) {
      for (uint32_t t : *list) {
        if (t < used.size()) used[t] = true;
      }
    }
  }
  std::vector<Plan::Piece> pieces;
  for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
    if (!used[t] || !trace.tensors[t].global) continue;
    Bytes from = 0;
    for (const auto& [begin, stop] : away[t]) {
      if (begin > from) pieces.push_back({t, from, begin - from});
      from = stop;
    }
    if (from < trace.tensors[t].bytes) pieces.push_back({t, from, trace.tensors[t].bytes - from});
  }
  return pieces;
}

}  // namespace

Bytes HostBytes(const Trace& trace, const Lifetimes& life, const Layout& layout) {
  std::vector<Bytes> reach(life.intervals.size(), 0);  // an interval's pieces begin at offset 0
  for (const Layout::Piece& p : layout.out) {
    reach[p.interval] = std::max(reach[p.interval], p.offset + p.bytes);
  }
  // Intervals of a tensor come in order; its pages stay from the first that reaches them.
  const size_t n = trace.launches.size();
  std::vector<Bytes> so_far(trace.tensors.size(), 0);
  std::vector<int64_t> change(n + 1, 0);
  std::vector<size_t> last_use(trace.tensors.size(), 0);
  for (size_t k = 0; k < n; ++k) {
    for (const auto* list : {&trace.launches[k].reads, &trace.launches[k].writes}) {
      for (uint32_t t : *list) {
        if (t < last_use.size()) last_use[t] = k;
      }
    }
  }
  Bytes always = 0;
  for (size_t i = 0; i < life.intervals.size(); ++i) {
    const InactiveInterval& interval = life.intervals[i];
    const uint32_t t = interval.tensor;
    if (reach[i] <= so_far[t]) continue;
    const Bytes more = reach[i] - so_far[t];
    so_far[t] = reach[i];
    if (trace.tensors[t].global) {
      always += more;
    } else {
      change[interval.last_use] += static_cast<int64_t>(more);
      change[last_use[t] + 1] -= static_cast<int64_t>(more);
    }
  }
  int64_t now = 0, most = 0;
  for (int64_t step : change) most = std::max(most, now += step);
  return always + static_cast<Bytes>(most);
}

Layout CutPieces(Layout layout, Bytes largest) {
  if (largest == 0) return layout;
  for (std::vector<Layout::Piece>* pieces : {&layout.out, &layout.in}) {
    std::vector<Layout::Piece> cut;
    cut.reserve(pieces->size());
    for (const Layout::Piece& p : *pieces) {
      const double per_byte = (p.end - p.start) / static_cast<double>(p.bytes);
      for (Bytes done = 0; done < p.bytes; done += largest) {
        const Bytes bytes = std::min(largest, p.bytes - done);
        const double start = p.start + per_byte * static_cast<double>(done);
        const double end = done + bytes == p.bytes
                               ? p.end
                               : p.start + per_byte * static_cast<double>(done + bytes);
        cut.push_back({p.interval, p.offset + done, bytes, start, end});
      }
    }
    *pieces = std::move(cut);
  }
  return layout;
}

Plan ToPlan(const Trace& trace, const Lifetimes& life, const std::vector<bool>& copied,
            const Layout& layout) {
  const size_t n = trace.launches.size();
  Plan plan;
  for (const Launch& launch : trace.launches) plan.compute_seconds += launch.seconds;
  plan.period_seconds = layout.period;
  plan.stall_seconds = std::max(0.0, plan.period_seconds - plan.compute_seconds);
  plan.launch_start = layout.launch_start;
  plan.launch_end = layout.launch_end;
  for (const Layout::Piece& p : layout.out) {
    const InactiveInterval& interval = life.intervals[p.interval];
    const bool copies = copied[p.interval];
    plan.evictions.push_back(ToMove(p, interval, n, layout.period, Move::Kind::kEvict, copies));
    if (copies) plan.moved_d2h += p.bytes;
    if (!copies) plan.advised.push_back(interval.tensor);
  }
  std::sort(plan.advised.begin(), plan.advised.end());
  plan.advised.erase(std::unique(plan.advised.begin(), plan.advised.end()), plan.advised.end());
  for (const Layout::Piece& p : layout.in) {
    const InactiveInterval& interval = life.intervals[p.interval];
    plan.fetches.push_back(ToMove(p, interval, n, layout.period, Move::Kind::kFetch, true));
    plan.moved_h2d += p.bytes;
  }
  auto by_start = [](const Move& a, const Move& b) { return a.start < b.start; };
  std::stable_sort(plan.evictions.begin(), plan.evictions.end(), by_start);
  std::stable_sort(plan.fetches.begin(), plan.fetches.end(), by_start);
  plan.host_bytes = HostBytes(trace, life, layout);
  plan.initially_resident = InitiallyResident(trace, life, layout);
  return plan;
}

}  // namespace atp::policy
