// SPDX-License-Identifier: Apache-2.0
#include "policy/planner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "policy/bounds.h"
#include "policy/chase.h"
#include "policy/cover.h"
#include "policy/flow.h"
#include "policy/greedy.h"
#include "policy/layout_plan.h"
#include "policy/lifetimes.h"
#include "policy/mapped.h"
#include "policy/room_to_return.h"
#include "policy/timetable.h"
#include "policy/window_bound.h"

namespace atp::policy {
namespace {

// The least traffic is tried where the greedy exceeds the bound by more than this share: a short
// period is planned so quickly that little is worth it, and where the link sets the pace all that
// is lost is lost by moving too much or too late.
constexpr double kWorth = 0.005, kWorthIfShort = 0.0002, kWorthIfLinkBound = 0.0005;
constexpr size_t kShort = 512;  // launches
constexpr double kFar = 0.03;   // a greedy plan that exceeds the bound by more is seldom the best
// Work, in moves laid out, after which no other way is begun: what takes 40 ms with 1,400 launches
// or fewer, whose bounds take up to 10 ms of it, and the same for each launch of a longer period.
constexpr size_t kMostWork = 130'000, kWorkOfALaunch = 55, kMostWorkPerLaunch = 38;
constexpr int64_t kPeriodsIfLong = 3;  // of CoverOptions, in a long period
constexpr int64_t kSingles = 3;        // periods of a play that are each tried as the whole plan
// In this order: with a launch for the way at both ends of an absence, at its end, at none; whole
// tensors, where launches are so short that what they lack cannot come while they run.
constexpr CoverOptions kCovers[] = {
    {0, 1, 1, 1, 8, false}, {0, 1, 0, 1, 8, false}, {0, 1, 0, 0, 8, false}, {0, 1, 0, 0, 1, true}};

constexpr double kAsFast = 1e-3;   // share of the period by which a sturdier plan may be slower
constexpr double kNothing = 1e-4;  // share of the period that is not worth another attempt

// One way of planning; the best of several is kept.
struct Variant {
  int slack_granules;
  GreedyOptions::Brief brief;
  double worth = kNothing;  // tried while the best plan exceeds the bound by more than this share
  bool late = false;        // slow and seldom best: tried after what moves least
  bool fallback = false;    // tried only when nothing else worked
};

// Rounding costs up to two granules of room; small devices are also planned without them.
std::vector<Variant> Variants(int64_t granules) {
  using Brief = GreedyOptions::Brief;
  constexpr int64_t kFewGranules = 512;
  std::vector<Variant> variants = {
      {2, Brief::kWithoutPause}, {2, Brief::kNever}, {2, Brief::kAlways, 0.01, true}};
  if (granules <= kFewGranules) {
    variants.push_back({0, Brief::kWithoutPause});
    variants.push_back({0, Brief::kNever});
    variants.push_back({0, Brief::kAlways});
    variants.push_back({1, Brief::kNever});
  }
  variants.push_back({8, Brief::kAlways, 0, true, true});
  variants.push_back({32, Brief::kAlways, 0, true, true});
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
    // Beside much longer ones the times of moves are lost in rounding.
    constexpr double kLongest = 1e6;
    if (!(launch.seconds >= 0 && launch.seconds <= kLongest)) {
      return "launch " + std::to_string(k) + " (" + launch.name +
             ") has no valid duration: from 0 to 1e6 s are";
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

void HoldUnsure(const PlanOptions& options, Lifetimes* life) {
  std::vector<bool> unsure;
  for (double sure : options.confidence) unsure.push_back(!(sure >= options.least_confidence));
  if (std::find(unsure.begin(), unsure.end(), true) != unsure.end()) Hold(unsure, life);
}

// What all attempts at one plan share.
struct Task {
  const Trace& trace;
  const PlanOptions& options;
  const Lifetimes& life;
  LinkRates rates;
  int64_t memory;
  std::vector<bool> copied;  // per interval

  int64_t granule() const { return static_cast<int64_t>(options.granule); }
};

// Bytes of a move in a simulation: a 2048th of memory, so that little room waits for its end, or as
// much more as makes a period of `moved` bytes no more than `most_moves`, so that it takes no time.
// The plan cuts what is larger than a move may be (CutPieces).
int64_t PieceBytes(const Task& task, Bytes moved, Bytes most_moves) {
  constexpr int64_t kPieces = 2048;
  const int64_t granule = task.granule();
  const int64_t small = std::max<int64_t>(task.memory / kPieces / granule, 1);
  const int64_t few = static_cast<int64_t>(moved / most_moves) / granule + 1;
  return std::max(small, few) * granule;
}
// While amounts are compared; where a play decides what moves; in the plan.
constexpr Bytes kToCompare = 9000, kToDecide = 10000, kToKeep = 24000;

std::optional<Layout> TryFlow(const Task& task, const std::vector<int64_t>& amounts, int64_t piece,
                              bool put_off = false) {
  if (amounts.empty()) return std::nullopt;
  Layout layout;
  const FlowOptions options{task.memory, piece, task.options.turnaround_seconds, put_off};
  if (!FlowLayout(task.trace, task.life, task.rates, amounts, task.copied, options, &layout)) {
    return std::nullopt;
  }
  return layout;
}

std::vector<int64_t> AmountsOf(const Task& task, const Layout& layout) {
  std::vector<int64_t> amounts(task.life.intervals.size(), 0);
  for (const Layout::Piece& p : layout.out) amounts[p.interval] += static_cast<int64_t>(p.bytes);
  return amounts;
}

// Tries one way after the other; each only while the best so far leaves something to gain.
class Best {
 public:
  explicit Best(const Task& task) : task_(task) {}
  const std::optional<Layout>& layout() const { return layout_; }
  void Offer(std::optional<Layout> layout) {
    if (!layout || (layout_ && layout_->period <= layout->period)) return;
    if (FitsHost(*layout)) layout_ = std::move(layout);
  }
  // Work has been done that laid out so many moves.
  void Spend(size_t moves) { spent_ += moves + task_.trace.launches.size(); }
  bool MaySpendMore() const { return spent_ <= most_work(); }
  size_t most_work() const {
    const size_t n = task_.trace.launches.size(), bounds = kWorkOfALaunch * n;
    return std::max(kMostWork > bounds ? kMostWork - bounds : 0, kMostWorkPerLaunch * n);
  }
  // Bytes that the best so far moves in a period; all of memory both ways while there is none.
  Bytes moved() const {
    if (!layout_) return 2 * static_cast<Bytes>(task_.memory);
    Bytes moved = 0;
    for (const auto* pieces : {&layout_->out, &layout_->in}) {
      for (const Layout::Piece& p : *pieces) moved += p.bytes;
    }
    return moved;
  }
  // Plays these amounts in few moves, if they have not been played yet.
  // Returns their period; infinite where there is none or it is known.
  double OfferAmounts(std::vector<int64_t> amounts) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    if (amounts.empty()) return kNone;
    if (std::find(tried_.begin(), tried_.end(), amounts) != tried_.end()) return kNone;
    const int64_t piece = PieceBytes(task_, moved(), kToCompare);
    std::optional<Layout> layout = TryFlow(task_, amounts, piece);
    Spend(layout ? layout->out.size() + layout->in.size() : kToCompare);
    if (layout && (flow_period_ < 0 || layout->period < flow_period_)) {
      flow_period_ = layout->period, flow_piece_ = piece, flow_ = tried_.size();
    }
    tried_.push_back(std::move(amounts));
    const double period = layout ? layout->period : kNone;
    Offer(std::move(layout));
    return period;
  }
  // Plays the best of those amounts in smaller moves.
  void Refine() {
    constexpr double kClose = 1.02;  // of the best: what few moves may have cost
    if (flow_period_ < 0 || flow_period_ > kClose * layout_->period) return;
    const int64_t piece = PieceBytes(task_, moved(), kToKeep);
    if (piece < flow_piece_) Offer(TryFlow(task_, tried_[flow_], piece));
  }
  // Takes another plan in place of the best, which it may exceed by this share. False: it does not.
  bool Replace(std::optional<Layout> layout, double share) {
    if (!layout || layout->period > (1 + share) * layout_->period || !FitsHost(*layout)) {
      return false;
    }
    layout_ = std::move(layout);
    return true;
  }
  // Of the plans that were refused because of it; 0 if none was.
  Bytes least_host() const { return least_host_; }
  // The best so far exceeds the bound by no more than this share.
  bool Within(double share) {
    if (!layout_) return false;
    const double compute = ComputeSeconds(task_.trace);
    if (layout_->period <= (1 + std::min(share, kNothing)) * compute) return true;
    if (bound_ < 0)
      bound_ = BoundWithWindows(task_.trace, static_cast<Bytes>(task_.memory),
                                task_.options.clean_leaves_free);
    return layout_->period <= (1 + share) * bound_;
  }

 private:
  bool FitsHost(const Layout& layout) {
    if (task_.options.host_memory == 0) return true;
    const Bytes host = HostBytes(task_.trace, task_.life, layout);
    if (host <= task_.options.host_memory) return true;
    least_host_ = least_host_ == 0 ? host : std::min(least_host_, host);
    return false;
  }

  const Task& task_;
  std::optional<Layout> layout_;
  Bytes least_host_ = 0;
  double bound_ = -1;
  size_t spent_ = 0;
  std::vector<std::vector<int64_t>> tried_;  // amounts that have been played
  size_t flow_ = 0;                          // the fastest of them
  double flow_period_ = -1;
  int64_t flow_piece_ = 0;
};

void OfferGreedy(const Task& task, const Variant& variant, Best* best) {
  constexpr int kRounds = 40;
  constexpr size_t kRepairsForAMove = 3;  // a move of a greedy plan is laid out so quickly
  constexpr size_t kChoices = 6;          // what choosing costs for each launch
  GreedyOptions options;
  options.memory = task.memory;
  options.granule = task.granule();
  options.slack = variant.slack_granules * options.granule;
  options.clean_leaves_free = task.options.clean_leaves_free;
  options.brief = variant.brief;
  Greedy greedy(task.trace, task.life, task.rates, options);
  greedy.Run();
  Timetable table(task.trace, task.life, greedy,
                  {task.memory, task.options.granule, task.options.largest_move});
  best->Spend(kChoices * task.trace.launches.size());
  size_t spent = 0;  // a greedy plan that asks for so many repairs is not worth them
  const bool made = table.Build(kRounds, [&](size_t moves) {
    best->Spend(moves / kRepairsForAMove);
    spent += moves / kRepairsForAMove + task.trace.launches.size();
    return variant.fallback || (best->MaySpendMore() && 2 * spent < best->most_work());
  });
  if (!made) return;
  if (variant.fallback || task.options.turnaround_seconds <= 0) return best->Offer(table.layout());
  best->OfferAmounts(AmountsOf(task, table.layout()));
}

// What furthest next use does when it is played in time: as it is, if it comes to repeat itself;
// the mean of its periods, and the last few, as periods of their own. Played with `copied`, which
// may ask for more copies than the task. Returns the shortest period of them.
double OfferChase(const Task& task, const std::vector<bool>& copied, int64_t periods, double worth,
                  Best* best) {
  const int64_t piece = PieceBytes(task, best->moved(), kToDecide);
  const CoverOptions options{task.memory, piece, 0, 0, periods};
  ChaseResult chase = ChaseUses(task.trace, task.life, task.rates, copied, options);
  double shortest = std::numeric_limits<double>::infinity();
  auto offer = [&](std::vector<int64_t> amounts) {
    shortest = std::min(shortest, best->OfferAmounts(std::move(amounts)));
  };
  const bool late = task.options.turnaround_seconds > 0;  // the chase knows nothing of it
  if (chase.repeats && copied == task.copied) {
    std::vector<int64_t> amounts = AmountsOf(task, chase.layout);
    shortest = chase.layout.period;
    if (!late) best->Offer(std::move(chase.layout));
    if (chase.left.empty() || late) offer(std::move(amounts));
  }
  if (chase.left.empty()) return shortest;
  std::vector<int64_t> sums(task.life.intervals.size(), 0);
  for (const auto& left : chase.left) {
    std::transform(sums.begin(), sums.end(), left.begin(), sums.begin(), std::plus<>());
  }
  const int64_t counted = static_cast<int64_t>(chase.left.size());
  const int64_t left = std::accumulate(sums.begin(), sums.end(), int64_t{0});
  best->Spend(static_cast<size_t>(left / piece));  // both ways, and the periods that do not count
  offer(FitAmounts(task.life, sums, counted, options));
  if (task.trace.launches.size() > kShort) return shortest;
  for (int64_t i = std::max<int64_t>(counted - kSingles, 0); i < counted; ++i) {
    if (best->Within(worth) || !best->MaySpendMore()) break;
    offer(FitAmounts(task.life, chase.left[size_t(i)], 1, options));
  }
  return shortest;
}

// The best plan with more away where launches wait for what had no room to return earlier.
void OfferRoomToReturn(const Task& task, double worth, Best* best) {
  constexpr int kRounds = 3;
  for (int i = 0; i < kRounds && best->layout(); ++i) {
    if (best->Within(worth) || !best->MaySpendMore()) return;
    const double was = best->layout()->period;
    best->OfferAmounts(
        WithRoomToReturn(task.life, task.rates, *best->layout(), AmountsOf(task, *best->layout())));
    if (best->layout()->period >= (1 - kNothing) * was) return;
  }
}

// The period exceeds the launches' own time by this factor: the link sets the pace.
bool LinkBound(const Task& task, const Best& best, double factor) {
  return best.layout() && best.layout()->period > factor * ComputeSeconds(task.trace);
}

// Tries ways of planning, those first that are quick, until the best is near the bound or so much
// has been tried that more would take too long.
void Search(const Task& task, Best* best) {
  const std::vector<Variant> variants = Variants(task.memory / task.granule());
  const bool few = task.trace.launches.size() <= kShort;
  OfferGreedy(task, variants[0], best);
  const bool link_bound = !few && LinkBound(task, *best, 1.1);
  const double worth = few ? kWorthIfShort : link_bound ? kWorthIfLinkBound : kWorth;
  auto enough = [&](double share) {  // never nothing
    return best->layout() && (best->Within(share) || !best->MaySpendMore());
  };
  auto greedy = [&](bool late) {
    for (size_t i = 1; i < variants.size(); ++i) {
      const Variant& variant = variants[i];
      if (variant.late != late) continue;
      if (variant.fallback ? best->layout().has_value() : enough(variant.worth)) break;
      OfferGreedy(task, variant, best);
    }
  };
  auto covers = [&](size_t from, size_t to) {
    for (size_t i = from; i < to && !enough(worth); ++i) {
      CoverOptions cover = kCovers[i];
      cover.memory = task.memory, cover.granule = task.granule();
      if (!few && !cover.whole) cover.periods = kPeriodsIfLong;
      best->OfferAmounts(CoverAmounts(task.life, cover));
    }
  };
  const bool far = !few && (link_bound || !best->Within(kFar));
  if (!far) greedy(/*late=*/false);
  covers(0, few ? std::size(kCovers) : 1);
  if (!few) OfferRoomToReturn(task, worth, best);
  if (few) greedy(/*late=*/true);
  const std::vector<bool> all_copied(task.copied.size(), true);
  for (int64_t periods : few ? std::vector<int64_t>{1, 9} : std::vector<int64_t>{4}) {
    constexpr double kHopeless = 1.03;  // so far from the best that longer play is not worth it
    double shortest = std::numeric_limits<double>::infinity();
    if (!enough(worth)) shortest = OfferChase(task, task.copied, periods, worth, best);
    // What is best where all is copied is no worse where some of it leaves for free.
    if (!enough(worth) && few && task.copied != all_copied) {
      shortest = std::min(shortest, OfferChase(task, all_copied, periods, worth, best));
    }
    if (!best->layout() || shortest > kHopeless * best->layout()->period) break;
  }
  if (!few) covers(1, std::size(kCovers));
  if (far) greedy(/*late=*/false);
  if (!few) greedy(/*late=*/true);
  best->Refine();
}

// Where the link sets the pace, a few tensors that move as a whole wait for the room of each other,
// and a little of much does not. Furthest next use gives every tensor the same share in the mean of
// enough periods. Once of all data and, because a copy out slows the copies in, once of what leaves
// without one.
void OfferSpread(const Task& task, Best* best) {
  constexpr int64_t kLaunches = 20000;
  if (task.options.turnaround_seconds <= 0 || !LinkBound(task, *best, 1.02)) return;
  const int64_t periods = kLaunches / static_cast<int64_t>(task.trace.launches.size());
  if (periods == 0) return;  // it would take as long as all the rest
  Lifetimes clean = task.life;
  for (size_t i = 0; i < clean.intervals.size(); ++i) {
    if (task.copied[i]) clean.intervals[i].bytes = 0;
  }
  for (const Lifetimes* life : {&task.life, static_cast<const Lifetimes*>(&clean)}) {
    for (CoverOptions cover : kCovers) {
      if (cover.whole) continue;
      cover.memory = task.memory, cover.granule = task.granule();
      cover.periods = std::max(cover.periods, periods);
      best->OfferAmounts(CoverAmounts(*life, cover));
    }
  }
  best->Refine();
}

// The amounts of the best plan, with copies out put off where they would slow copies in.
void OfferPutOff(const Task& task, Best* best) {
  const bool slows = task.rates.duplex_h2d > 0 && task.rates.duplex_h2d < task.rates.h2d;
  if (task.options.turnaround_seconds <= 0 || !slows || !LinkBound(task, *best, 1.02)) return;
  const int64_t piece = PieceBytes(task, best->moved(), kToKeep);
  best->Offer(TryFlow(task, AmountsOf(task, *best->layout()), piece, /*put_off=*/true));
}

// Of plans that are as fast, the one that would also hold if all launches were shorter: its amounts
// are planned for a hurried period, and played in the expected one. From the most hurry down, and
// only where launches and not the link set the pace: a link that is busy all the time has nothing
// to spare.
void PreferUnhurried(const Task& task, Best* best) {
  constexpr int kSteps = 4;
  if (best->layout()->out.empty() || LinkBound(task, *best, 1.1)) return;
  const double spread = std::min(task.options.duration_spread, 0.9);
  for (int step = kSteps; step > 0; --step) {
    Trace trace = task.trace;
    for (Launch& launch : trace.launches) launch.seconds *= 1 - spread * step / kSteps;
    const Task hurried{trace, task.options, task.life, task.rates, task.memory, task.copied};
    Best fast(hurried);
    Search(hurried, &fast);
    if (!fast.layout()) continue;
    const int64_t piece = PieceBytes(task, best->moved(), kToKeep);
    if (best->Replace(TryFlow(task, AmountsOf(task, *fast.layout()), piece), kAsFast)) return;
  }
}

// Whatever is used comes to the device.
Plan MakeMovingPlan(const Trace& trace, const PlanOptions& given) {
  PlanOptions options = given;
  options.granule = std::max<Bytes>(options.granule, 1);
  const Bytes total = options.memory > 0 ? options.memory : trace.device_bytes;
  const int64_t memory = static_cast<int64_t>(total) - static_cast<int64_t>(options.head_room);
  Lifetimes life = FindLifetimes(trace);
  for (uint32_t t : options.never_advised) {
    if (t < life.written.size()) life.written[t] = true;  // as if: its exits are copied
  }
  HoldUnsure(options, &life);
  const std::string problem = Problem(trace, life, memory);
  if (!problem.empty()) return Infeasible(trace, problem);
  LinkRates rates = WithDriverTime(trace.link, options);
  if (!(rates.h2d > 0 && rates.d2h > 0)) rates.h2d = rates.d2h = 1;  // nothing moves
  Task task{trace, options, life, rates, memory, {}};
  for (const InactiveInterval& i : life.intervals) {
    task.copied.push_back(!options.clean_leaves_free || life.written[i.tensor]);
  }
  Best best(task);
  Search(task, &best);
  OfferSpread(task, &best);
  OfferPutOff(task, &best);
  if (options.duration_spread > 0 && best.layout()) PreferUnhurried(task, &best);
  if (best.layout()) {
    return ToPlan(trace, life, task.copied, CutPieces(*best.layout(), options.largest_move));
  }
  if (best.least_host() > 0) {
    return Infeasible(trace, "a period needs " + std::to_string(best.least_host()) +
                                 " bytes of host memory, but only " +
                                 std::to_string(options.host_memory) + " may be used");
  }
  return Infeasible(trace, "no schedule closes on itself within the memory");
}

}  // namespace

Plan MakePlan(const Trace& trace, const PlanOptions& options) {
  Plan plan = MakeMovingPlan(trace, options);
  if (!options.may_map || !plan.feasible || plan.stall_seconds <= 0) return plan;
  const Bytes total = options.memory > 0 ? options.memory : trace.device_bytes;
  Plan mapped = MappedPlan(trace, total - options.head_room, options);
  const bool fits = options.host_memory == 0 || mapped.host_bytes <= options.host_memory;
  if (mapped.feasible && fits && mapped.period_seconds < plan.period_seconds) return mapped;
  return plan;
}

}  // namespace atp::policy
