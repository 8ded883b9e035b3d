// SPDX-License-Identifier: Apache-2.0
#include "policy/planner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "policy/bounds.h"
#include "policy/greedy.h"
#include "policy/lifetimes.h"
#include "policy/timetable.h"

namespace atp::policy {
namespace {

constexpr double kTick = 5e-9;  // seconds; times closer than this are the same time

constexpr double kNothing = 1e-4;  // share of the period that is not worth another attempt

// One way of planning; the best of several is kept.
struct Variant {
  int slack_granules;
  GreedyOptions::Brief brief;
  double worth = kNothing;  // tried while the best plan exceeds the bound by more than this share
  bool fallback = false;    // tried only when nothing else worked
};

// Rounding costs up to two granules of room; small devices are also planned without them.
std::vector<Variant> Variants(int64_t granules) {
  using Brief = GreedyOptions::Brief;
  constexpr int64_t kFewGranules = 512;
  std::vector<Variant> variants = {
      {2, Brief::kWithoutPause}, {2, Brief::kNever}, {2, Brief::kAlways, 0.01}};
  if (granules <= kFewGranules) {
    variants.push_back({0, Brief::kWithoutPause});
    variants.push_back({0, Brief::kNever});
    variants.push_back({0, Brief::kAlways});
    variants.push_back({1, Brief::kNever});
  }
  variants.push_back({8, Brief::kAlways, 0, true});
  variants.push_back({32, Brief::kAlways, 0, true});
  return variants;
}

// The link as the movers see it: every granule also costs driver time, one after the other.
LinkRates WithDriverTime(LinkRates rates, const PlanOptions& options) {
  const double per_byte = options.cpu_seconds_per_granule / static_cast<double>(options.granule);
  for (double* rate : {&rates.h2d, &rates.d2h, &rates.duplex_h2d, &rates.duplex_d2h}) {
    if (*rate > 0) *rate = 1 / (1 / *rate + per_byte);
  }
  return rates;
}

double Bound(const Trace& trace, int64_t memory, const PlanOptions& options) {
  const Bytes room = static_cast<Bytes>(memory);
  return options.clean_leaves_free ? BoundSafe(trace, room) : BoundClosed(trace, room);
}

Plan Infeasible(const Trace& trace, std::string why) {
  Plan plan;
  plan.compute_seconds = plan.period_seconds = 0;
  for (const Launch& launch : trace.launches) plan.compute_seconds += launch.seconds;
  plan.feasible = false;
  plan.why = std::move(why);
  return plan;
}

// Empty, or why no plan exists.
std::string Problem(const Trace& trace, const Lifetimes& life, int64_t memory) {
  for (size_t k = 0; k < trace.launches.size(); ++k) {
    const Launch& launch = trace.launches[k];
    if (!(launch.seconds >= 0) || !std::isfinite(launch.seconds)) {
      return "launch " + std::to_string(k) + " (" + launch.name + ") has no valid duration";
    }
    if (static_cast<int64_t>(life.touched[k]) > memory) {
      return "launch " + std::to_string(k) + " (" + launch.name + ") touches " +
             std::to_string(life.touched[k]) + " bytes at once, but only " +
             std::to_string(std::max<int64_t>(memory, 0)) + " may be used";
    }
  }
  const bool moves = std::any_of(life.live.begin(), life.live.end(),
                                 [&](Bytes live) { return static_cast<int64_t>(live) > memory; });
  if (moves && !(trace.link.h2d > 0 && trace.link.d2h > 0)) return "the trace names no link rates";
  return "";
}

Move ToMove(const Timetable::Piece& piece, const InactiveInterval& interval, size_t n,
            double period, Move::Kind kind, bool copies) {
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
                                           const Timetable& table) {
  const size_t n = trace.launches.size();
  const double end = table.period() + kTick;
  std::vector<Ranges> left(life.intervals.size()), coming(life.intervals.size());
  for (const auto& p : table.out()) {
    if (p.end <= end) left[p.interval].push_back({p.offset, p.offset + p.bytes});
  }
  for (const auto& p : table.in()) {
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

Plan ToPlan(const Trace& trace, const Lifetimes& life, const Greedy& greedy,
            const Timetable& table) {
  const size_t n = trace.launches.size();
  Plan plan;
  for (const Launch& launch : trace.launches) plan.compute_seconds += launch.seconds;
  plan.period_seconds = table.period();
  plan.stall_seconds = std::max(0.0, plan.period_seconds - plan.compute_seconds);
  plan.launch_start = table.launch_start();
  plan.launch_end = table.launch_end();
  for (const auto& p : table.out()) {
    const bool copies = greedy.amounts()[p.interval].copies;
    plan.evictions.push_back(
        ToMove(p, life.intervals[p.interval], n, table.period(), Move::Kind::kEvict, copies));
    if (copies) plan.moved_d2h += p.bytes;
  }
  for (const auto& p : table.in()) {
    plan.fetches.push_back(
        ToMove(p, life.intervals[p.interval], n, table.period(), Move::Kind::kFetch, true));
    plan.moved_h2d += p.bytes;
  }
  auto by_start = [](const Move& a, const Move& b) { return a.start < b.start; };
  std::stable_sort(plan.evictions.begin(), plan.evictions.end(), by_start);
  std::stable_sort(plan.fetches.begin(), plan.fetches.end(), by_start);
  plan.initially_resident = InitiallyResident(trace, life, table);
  return plan;
}

}  // namespace

Plan MakePlan(const Trace& trace, const PlanOptions& given) {
  PlanOptions options = given;
  options.granule = std::max<Bytes>(options.granule, 1);
  const Bytes total = options.memory > 0 ? options.memory : trace.device_bytes;
  const int64_t memory = static_cast<int64_t>(total) - static_cast<int64_t>(options.head_room);
  const Lifetimes life = FindLifetimes(trace);
  const std::string problem = Problem(trace, life, memory);
  if (!problem.empty()) return Infeasible(trace, problem);
  LinkRates rates = WithDriverTime(trace.link, options);
  if (!(rates.h2d > 0 && rates.d2h > 0)) rates.h2d = rates.d2h = 1;  // nothing moves
  Plan best = Infeasible(trace, "no schedule closes on itself within the memory");
  double bound = -1;
  for (const Variant& variant : Variants(memory / static_cast<int64_t>(options.granule))) {
    if (best.feasible) {
      if (variant.fallback || best.stall_seconds <= kNothing * best.compute_seconds) break;
      if (bound < 0) bound = Bound(trace, memory, options);
      if (best.period_seconds <= (1 + variant.worth) * bound) break;
    }
    GreedyOptions greedy_options;
    greedy_options.memory = memory;
    greedy_options.granule = static_cast<int64_t>(options.granule);
    greedy_options.slack = variant.slack_granules * greedy_options.granule;
    greedy_options.clean_leaves_free = options.clean_leaves_free;
    greedy_options.brief = variant.brief;
    Greedy greedy(trace, life, rates, greedy_options);
    greedy.Run();
    Timetable table(trace, life, greedy, {memory, options.granule, options.largest_move});
    if (!table.Build(40)) continue;
    if (!best.feasible || table.period() < best.period_seconds) {
      best = ToPlan(trace, life, greedy, table);
    }
  }
  return best;
}

}  // namespace atp::policy
