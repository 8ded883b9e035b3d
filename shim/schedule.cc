// SPDX-License-Identifier: Apache-2.0
#include "shim/schedule.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace atp::shim {
namespace {

using policy::Move;

constexpr double kTick = 1e-9;  // seconds; plans are sums of floating-point times

struct Pair {  // one stay on the host
  uint32_t tensor, after, before;
  uint64_t offset, bytes;
  double evict_start, fetch_start;
  bool clean;
  uint32_t drop = 0;  // as in Action
};

// Times of a plan lie in one period. For an order, an eviction must start after its launch and a
// fetch before its own, whatever period that is.
double StartOfEvict(const policy::Plan& plan, const Move& move) {
  const bool next =
      move.after < plan.launch_end.size() && move.start < plan.launch_end[move.after] - kTick;
  return next ? move.start + plan.period_seconds : move.start;
}

double StartOfFetch(const policy::Plan& plan, const Move& move) {
  const bool last =
      move.before < plan.launch_start.size() && move.start > plan.launch_start[move.before] + kTick;
  return last ? move.start - plan.period_seconds : move.start;
}

// The planner gives evictions and fetches apart; a fetch belongs to the eviction of the same tensor
// whose stay it ends. Both lists are walked per tensor, byte range by byte range.
std::vector<Pair> PairMoves(const policy::Plan& plan, uint64_t piece_bytes) {
  using Stay = std::tuple<uint32_t, uint32_t, uint32_t>;  // tensor, after, before
  std::map<Stay, std::vector<const Move*>> fetches;
  for (const Move& f : plan.fetches) fetches[{f.tensor, f.after, f.before}].push_back(&f);
  for (auto& [stay, moves] : fetches) {
    std::sort(moves.begin(), moves.end(),
              [](const Move* a, const Move* b) { return a->offset < b->offset; });
  }
  std::vector<Pair> pairs;
  for (const Move& e : plan.evictions) {
    const auto found = fetches.find({e.tensor, e.after, e.before});
    if (found == fetches.end()) continue;
    for (const Move* f : found->second) {
      const uint64_t begin = std::max(e.offset, f->offset);
      const uint64_t end = std::min(e.offset + e.bytes, f->offset + f->bytes);
      for (uint64_t at = begin; at < end; at += piece_bytes) {
        pairs.push_back({e.tensor, e.after, e.before, at, std::min(piece_bytes, end - at),
                         StartOfEvict(plan, e), StartOfFetch(plan, *f), !e.copies});
      }
    }
  }
  return pairs;
}

// What the period touches and the plan never moves is touched once a period, before its first use.
// Most of a touch's cost is that of the call; nothing is in flight, so the pieces are large.
void AddTouches(const std::vector<Pair>& pairs, Schedule* s) {
  constexpr uint64_t kTouchBytes = 64u << 20;
  std::vector<std::vector<bool>> moves(s->tensors.size());
  for (size_t t = 0; t < moves.size(); ++t) moves[t].resize(s->tensors[t].bytes / kGranule);
  for (const Pair& p : pairs) {
    for (uint64_t at = p.offset; at < p.offset + p.bytes; at += kGranule) {
      moves[p.tensor][at / kGranule] = true;
    }
  }
  for (size_t t = 0; t < moves.size(); ++t) {
    const Placed& placed = s->tensors[t];
    for (size_t g = 0; g < moves[t].size(); ++g) {
      if (moves[t][g]) continue;
      const bool grows = g > 0 && !moves[t][g - 1] && s->fetches.back().bytes < kTouchBytes;
      if (!grows) {
        Action touch;
        touch.allocation = placed.allocation;
        touch.offset = placed.offset + g * kGranule;
        touch.position = placed.first_touch;
        touch.touch = true;
        s->fetches.push_back(touch);
      }
      s->fetches.back().bytes += kGranule;
    }
  }
}

// What leaves without a copy costs calls only: neighbours that leave behind the same launch go
// together.
bool LeavesWithLast(const std::vector<Action>& evicts, const Action& move, uint64_t piece_bytes) {
  if (evicts.empty() || !move.clean) return false;
  const Action& last = evicts.back();
  return last.clean && last.allocation == move.allocation && last.position == move.position &&
         last.offset + last.bytes == move.offset && last.bytes + move.bytes <= piece_bytes;
}

void AddDrops(const policy::Plan& plan, const std::vector<PlannedDrop>& drops,
              std::vector<Pair>* pairs, Schedule* s) {
  if (drops.empty()) return;
  s->checked.assign(s->length, false);
  for (const PlannedDrop& d : drops) {
    const Placed& t = s->tensors[d.tensor];
    s->drops.push_back({t.allocation, t.bytes, d.producer, d.after, d.before});
    for (uint32_t k = d.producer; k <= d.before; ++k) s->checked[k] = true;
    pairs->push_back({d.tensor, d.after, d.before, 0, t.bytes, plan.launch_end[d.after],
                      plan.launch_start[d.before], false, static_cast<uint32_t>(s->drops.size())});
  }
}

}  // namespace

Schedule BuildSchedule(const policy::Plan& plan, const std::vector<Placed>& tensors,
                       uint32_t length, uint64_t piece_bytes, bool touches,
                       const std::vector<PlannedDrop>& drops) {
  Schedule s;
  s.length = length;
  s.tensors = tensors;
  s.promise_seconds = plan.period_seconds;

  std::vector<Pair> pairs = PairMoves(plan, piece_bytes);
  AddDrops(plan, drops, &pairs, &s);
  std::stable_sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
    return std::tie(a.evict_start, a.after) < std::tie(b.evict_start, b.after);
  });
  std::vector<bool> flagged(length, false);
  std::vector<double> fetch_start, evict_start;  // of each, as it is added
  for (const Pair& p : pairs) {
    const Placed& t = tensors[p.tensor];
    const bool wraps = p.after >= p.before;
    Action move;
    move.allocation = t.allocation;
    move.offset = t.offset + p.offset;
    move.bytes = p.bytes;
    move.clean = p.clean;
    move.drop = p.drop;
    move.position = p.after;
    if (wraps) s.out_at_start.push_back(move);
    if (LeavesWithLast(s.evicts, move, piece_bytes)) {
      s.evicts.back().bytes += move.bytes;
    } else {
      s.evicts.push_back(move);
      evict_start.push_back(p.evict_start);
    }
    move.position = p.before;
    move.partner = static_cast<uint32_t>(s.evicts.size() - 1);
    move.partner_in_previous_period = wraps;
    s.fetches.push_back(move);
    fetch_start.push_back(p.fetch_start);
    flagged[p.after] = true;
    if (p.drop != 0) continue;
    s.moved_in_bytes += p.bytes;
    s.moved_out_bytes += p.clean ? 0 : p.bytes;
  }
  if (touches) AddTouches(pairs, &s);
  fetch_start.resize(s.fetches.size(), 0);
  std::vector<uint32_t> order(s.fetches.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    // Touches first: the last fetch of a position is then the one that its launch waits for.
    const auto key = [&](uint32_t i) {
      return std::make_tuple(s.fetches[i].position, !s.fetches[i].touch, fetch_start[i]);
    };
    return key(a) < key(b);
  });
  std::vector<Action> sorted;
  sorted.reserve(order.size());
  for (const uint32_t i : order) sorted.push_back(s.fetches[i]);
  s.fetches = std::move(sorted);
  // Evictions are in the order of their starts; so is how far the fetches have come by then. One
  // may be put off into the next period, beyond some of that one's fetches.
  const size_t n = order.size();
  const auto start_of = [&](size_t at) {
    return fetch_start[order[at % n]] + static_cast<double>(at / n) * plan.period_seconds;
  };
  for (size_t i = 0, at = 0; i < s.evicts.size(); ++i) {
    while (at < 2 * n && start_of(at) < evict_start[i] - kTick) ++at;
    s.behind.push_back(static_cast<uint32_t>(at));
  }

  s.fetch_cut.assign(length, 0);
  for (const Action& f : s.fetches) ++s.fetch_cut[f.position];
  for (uint32_t p = 1; p < length; ++p) s.fetch_cut[p] += s.fetch_cut[p - 1];
  s.flag_index.assign(length, Schedule::kNotFlagged);
  for (uint32_t p = 0; p < length; ++p) {
    if (flagged[p]) s.flag_index[p] = s.flagged++;
  }
  s.oldest_flag.resize(s.evicts.size());
  uint32_t oldest = Schedule::kNotFlagged;
  for (size_t i = s.evicts.size(); i-- > 0;) {
    oldest = std::min(oldest, s.flag_index[s.evicts[i].position]);
    s.oldest_flag[i] = oldest;
  }
  return s;
}

}  // namespace atp::shim
