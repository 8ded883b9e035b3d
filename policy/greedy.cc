// SPDX-License-Identifier: Apache-2.0
#include "policy/greedy.h"

#include <algorithm>

namespace atp::policy {
namespace {

std::vector<double> WindowSeconds(const Trace& trace) {
  std::vector<double> seconds(2 * trace.launches.size(), 0.0);
  for (size_t k = 0; k < trace.launches.size(); ++k) seconds[2 * k] = trace.launches[k].seconds;
  return seconds;
}

// Only where something must move can a move be late: slack is asked for nowhere else.
std::vector<int64_t> Overflows(const Lifetimes& life, const GreedyOptions& options) {
  std::vector<int64_t> overflows;
  overflows.reserve(life.live.size());
  for (Bytes live : life.live) {
    const int64_t over = static_cast<int64_t>(live) - options.memory;
    overflows.push_back(over > 0 ? over + options.slack : over);
  }
  return overflows;
}

int64_t RoundUp(int64_t bytes, int64_t granule) {
  return (bytes + granule - 1) / granule * granule;
}
int64_t RoundDown(int64_t bytes, int64_t granule) { return bytes / granule * granule; }

}  // namespace

Greedy::Greedy(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
               const GreedyOptions& options)
    : life_(life),
      options_(options),
      n_(static_cast<int64_t>(trace.launches.size())),
      budget_(rates, WindowSeconds(trace)),
      overflow_(Overflows(life, options)),
      amounts_(life.intervals.size()),
      copied_tree_({}),
      free_tree_({}) {
  for (size_t i = 0; i < amounts_.size(); ++i) {
    amounts_[i].copies = !options.clean_leaves_free || life.written[life.intervals[i].tensor];
  }
  AddViews(copied_, true);
  AddViews(free_, false);
  copied_tree_ = MakeTree(copied_);
  free_tree_ = MakeTree(free_);
}

void Greedy::AddViews(Side& side, bool copies) {
  side.views_of.resize(amounts_.size());
  for (uint32_t i = 0; i < amounts_.size(); ++i) {
    if (amounts_[i].copies != copies) continue;
    const int64_t last = life_.intervals[i].last_use, next = life_.intervals[i].next_use;
    side.views.push_back({i, last, next});
    if (next >= n_) side.views.push_back({i, last - n_, next - n_});
  }
  std::stable_sort(side.views.begin(), side.views.end(),
                   [](const View& a, const View& b) { return a.last_use < b.last_use; });
  side.upto.assign(static_cast<size_t>(2 * n_ + 1), 0);
  size_t count = 0;
  for (int64_t k = 0; k <= 2 * n_; ++k) {
    while (count < side.views.size() && side.views[count].last_use < k - n_) ++count;
    side.upto[static_cast<size_t>(k)] = count;
  }
  for (uint32_t v = 0; v < side.views.size(); ++v) {
    side.views_of[side.views[v].interval].push_back(v);
  }
}

LatestUse Greedy::MakeTree(const Side& side) {
  std::vector<int64_t> next_uses;
  next_uses.reserve(side.views.size());
  for (const View& view : side.views) next_uses.push_back(view.next_use);
  return LatestUse(next_uses);
}

// Adds bytes to the launches [first_launch, next_use), folded into the period.
void Greedy::Occupy(int64_t first_launch, int64_t next_use, int64_t bytes) {
  if (first_launch >= next_use) return;
  int64_t first = first_launch % n_, last = first + (next_use - first_launch) - 1;
  if (first < 0) first += n_, last += n_;
  if (last < n_) return overflow_.Add(first, last, bytes);
  overflow_.Add(first, n_ - 1, bytes);
  overflow_.Add(0, last - n_, bytes);
}

void Greedy::ApplyShare(const LinkBudget::Share& share, Direction direction, int64_t next_use,
                        int sign) {
  // Away from the first launch that starts after the window; back from the launch of the window on.
  const bool out = direction == Direction::kOut;
  const int64_t first = out ? (share.window >> 1) + 1 : (share.window + 1) >> 1;
  Occupy(first, next_use, sign * (out ? -share.bytes : share.bytes));
}

int64_t Greedy::Remaining(const View& view) const {
  return static_cast<int64_t>(life_.intervals[view.interval].bytes) - amounts_[view.interval].bytes;
}

// Whole granules that cover `need`, or all that remains.
int64_t Greedy::Size(const View& view, int64_t need) const {
  return std::min(RoundUp(need, options_.granule), Remaining(view));
}

// The first window in which the victim's bytes may return.
int64_t Greedy::ReturnFrom(const View& view, int64_t k, Way way) const {
  if (way == Way::kFreeBrief || way == Way::kPauseBrief) return 2 * k + 1;
  const int64_t last = overflow_.LastAbove(k + 1, std::min(view.next_use, n_) - 1);
  return 2 * std::max(k, last) + 1;
}

// The victim for launch k: needed again latest among those that had link time to leave; with
// pauses, the cheapest in pauses, where the one needed latest stands for all that could not leave.
bool Greedy::Best(int64_t k, Way way, View& view) const {
  const int64_t early =
      budget_.LastStart(Direction::kOut, 2 * k - 2 * n_ + 1, 2 * k - 1, options_.granule);
  // Windows [2p+1, 2k-1] hold a granule while 2p+1 <= early.
  const int64_t last_use = (early - 1) >> 1;
  const size_t leaves = copied_.upto[static_cast<size_t>(std::clamp(last_use + 1, -n_, k) + n_)];
  const size_t any = copied_.upto[static_cast<size_t>(k + n_)];
  const size_t clean = free_.upto[static_cast<size_t>(k + n_)];
  const int64_t need = Overflow(k);
  const bool pauses = way == Way::kPause || way == Way::kPauseBrief;
  double least = 0;
  bool found_one = false;
  auto consider = [&](const Side& side, size_t found, bool copies) {
    if (found >= side.views.size() || side.views[found].next_use <= k) return;
    const View& candidate = side.views[found];
    const int64_t size = Size(candidate, need), enough = std::min(size, options_.granule);
    const int64_t in =
        budget_.Free(Direction::kIn, ReturnFrom(candidate, k, way), 2 * candidate.next_use - 1);
    int64_t out = size;
    if (copies) out = budget_.Free(Direction::kOut, 2 * candidate.last_use + 1, 2 * k - 1);
    double cost = -static_cast<double>(candidate.next_use);
    if (pauses) {
      cost = static_cast<double>(std::max<int64_t>(size - in, 0)) / budget_.Rate(Direction::kIn) +
             static_cast<double>(std::max<int64_t>(size - out, 0)) / budget_.Rate(Direction::kOut);
      cost /= static_cast<double>(size);
    } else if (in < enough || out < enough) {
      return;
    }
    if (found_one && cost >= least) return;
    found_one = true;
    least = cost;
    view = candidate;
  };
  consider(free_, free_tree_.Find(clean), false);
  consider(copied_, copied_tree_.Find(leaves), true);
  if (pauses) consider(copied_, copied_tree_.Find(any), true);
  return found_one;
}

void Greedy::Pause(const View& view, int64_t k, int64_t return_from, int64_t bytes) {
  if (amounts_[view.interval].copies) {
    const int64_t out = budget_.Free(Direction::kOut, 2 * view.last_use + 1, 2 * k - 1);
    if (out < bytes) budget_.LengthenFor(2 * k - 1, Direction::kOut, bytes - out);
  }
  const int64_t last = 2 * view.next_use - 1;
  const int64_t in = budget_.Free(Direction::kIn, return_from, last);
  if (in < bytes) budget_.LengthenFor(last, Direction::kIn, bytes - in);
}

// Sends `bytes` of the interval away over launch k; the link has room for them.
void Greedy::Move(const View& view, int64_t k, int64_t return_from, int64_t bytes) {
  Amounts& amounts = amounts_[view.interval];
  const int64_t shift = 2 * (life_.intervals[view.interval].last_use - view.last_use);
  auto record = [&](const Shares& shares, Direction direction, Shares& list) {
    for (LinkBudget::Share share : shares) {
      ApplyShare(share, direction, view.next_use, +1);
      share.window += shift;
      list.push_back(share);
    }
  };
  if (amounts.copies) {
    record(budget_.TakeEarliest(Direction::kOut, 2 * view.last_use + 1, 2 * k - 1, bytes),
           Direction::kOut, amounts.out);
  } else {
    Occupy(view.last_use + 1, view.next_use, -bytes);
  }
  record(budget_.TakeLatest(Direction::kIn, return_from, 2 * view.next_use - 1, bytes),
         Direction::kIn, amounts.in);
  amounts.bytes += bytes;
  if (Remaining(view) > 0) return;
  Side& side = amounts.copies ? copied_ : free_;
  LatestUse& tree = amounts.copies ? copied_tree_ : free_tree_;
  for (uint32_t v : side.views_of[view.interval]) tree.Remove(v);
}

// One step for launch k; false when nothing more can be done in this way.
bool Greedy::Relieve(int64_t k, Way way) {
  const int64_t need = Overflow(k);
  View view;
  if (need <= 0 || !Best(k, way, view)) return false;
  const int64_t return_from = ReturnFrom(view, k, way);
  int64_t bytes = Size(view, need);
  if (way == Way::kPause || way == Way::kPauseBrief) {
    Pause(view, k, return_from, bytes);
  } else {
    int64_t room = budget_.Free(Direction::kIn, return_from, 2 * view.next_use - 1);
    if (amounts_[view.interval].copies) {
      room = std::min(room, budget_.Free(Direction::kOut, 2 * view.last_use + 1, 2 * k - 1));
    }
    if (room < bytes) bytes = RoundDown(room, options_.granule);
    if (bytes <= 0) return false;
  }
  Move(view, k, return_from, bytes);
  return true;
}

// Moves shares of one victim that are not away at launch k to the other side of it.
int64_t Greedy::StretchOne(const View& view, int64_t k, int64_t need, bool may_pause,
                           Direction direction) {
  const bool out = direction == Direction::kOut;
  Shares& shares = out ? amounts_[view.interval].out : amounts_[view.interval].in;
  const int64_t shift = 2 * (life_.intervals[view.interval].last_use - view.last_use);
  const int64_t from = out ? 2 * view.last_use + 1 : 2 * k + 1;
  const int64_t to = out ? 2 * k - 1 : 2 * view.next_use - 1;
  int64_t wrong = 0;
  for (const auto& share : shares) {
    const int64_t window = share.window - shift;
    if (out ? window >= 2 * k : window <= 2 * k) wrong += share.bytes;
  }
  if (wrong == 0) return 0;
  int64_t bytes = std::min(wrong, RoundUp(need, options_.granule));
  const int64_t room = budget_.Free(direction, from, to);
  if (!may_pause) bytes = std::min(bytes, room);
  if (bytes <= 0) return 0;
  if (room < bytes) {
    budget_.LengthenFor(out ? 2 * k - 1 : to, direction, bytes - room);
  }
  int64_t left = bytes;
  for (auto& share : shares) {
    const int64_t window = share.window - shift;
    if (left == 0 || !(out ? window >= 2 * k : window <= 2 * k)) continue;
    LinkBudget::Share part{window, std::min(left, share.bytes)};
    budget_.GiveBack(direction, part);
    ApplyShare(part, direction, view.next_use, -1);
    share.bytes -= part.bytes;
    left -= part.bytes;
  }
  std::erase_if(shares, [](const auto& share) { return share.bytes == 0; });
  for (LinkBudget::Share share : out ? budget_.TakeEarliest(direction, from, to, bytes)
                                     : budget_.TakeLatest(direction, from, to, bytes)) {
    ApplyShare(share, direction, view.next_use, +1);
    share.window += shift;
    shares.push_back(share);
  }
  return bytes;
}

void Greedy::Stretch(int64_t k) {
  std::vector<View> over;  // victims
  for (const Side* side : {&copied_, &free_}) {
    const size_t end = side->upto[static_cast<size_t>(k + n_)];
    for (size_t v = 0; v < end; ++v) {
      const View& view = side->views[v];
      if (view.next_use > k && amounts_[view.interval].bytes > 0) over.push_back(view);
    }
  }
  std::stable_sort(over.begin(), over.end(),
                   [](const View& a, const View& b) { return a.next_use > b.next_use; });
  for (bool may_pause : {false, true}) {
    for (Direction direction : {Direction::kIn, Direction::kOut}) {
      for (const View& view : over) {
        const int64_t need = Overflow(k);
        if (need <= 0) return;
        StretchOne(view, k, need, may_pause, direction);
      }
    }
  }
}

void Greedy::Run() {
  using Brief = GreedyOptions::Brief;
  for (int64_t k = 0; k < n_; ++k) {
    while (Relieve(k, Way::kFree)) {
    }
    while (options_.brief != Brief::kNever && Relieve(k, Way::kFreeBrief)) {
    }
    const Way pause = options_.brief == Brief::kAlways ? Way::kPauseBrief : Way::kPause;
    while (Relieve(k, pause)) {
    }
    if (Overflow(k) > options_.slack) Stretch(k);
  }
}

}  // namespace atp::policy
