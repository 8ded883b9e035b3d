// SPDX-License-Identifier: Apache-2.0
#include "policy/link_budget.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace atp::policy {

LinkBudget::LinkBudget(const LinkRates& rates, std::vector<double> window_seconds)
    : seconds_(std::move(window_seconds)), in_(rates.h2d), out_(rates.d2h), region_(rates) {
  for (int d = 0; d < 2; ++d) {
    used_[d].assign(seconds_.size(), 0);
    free_[d].assign(seconds_.size(), 0);
    sums_.emplace_back(seconds_.size());
  }
  for (size_t w = 0; w < seconds_.size(); ++w) Refresh(w);
}

size_t LinkBudget::Fold(int64_t window) const {
  const int64_t n = static_cast<int64_t>(seconds_.size());
  return static_cast<size_t>(((window % n) + n) % n);
}

int64_t LinkBudget::Capacity(Direction direction, size_t window) const {
  const double t = seconds_[window];
  const double h = static_cast<double>(used_[0][window]), d = static_cast<double>(used_[1][window]);
  double bytes;
  if (direction == Direction::kIn) {
    bytes = (t - d * region_.b1) / region_.a1;
    if (region_.b2 > 0) bytes = std::min(bytes, (t - d * region_.a2) / region_.b2);
    bytes -= h;
  } else {
    bytes = (t - h * region_.b2) / region_.a2;
    if (region_.b1 > 0) bytes = std::min(bytes, (t - h * region_.a1) / region_.b1);
    bytes -= d;
  }
  return bytes >= 1 ? static_cast<int64_t>(bytes) : 0;
}

void LinkBudget::Refresh(size_t window) {
  for (Direction direction : {Direction::kIn, Direction::kOut}) {
    const int d = static_cast<int>(direction);
    const int64_t now = Capacity(direction, window);
    if (now == free_[d][window]) continue;
    sums_[static_cast<size_t>(d)].Add(window, now - free_[d][window]);
    free_[d][window] = now;
  }
}

int64_t LinkBudget::Free(Direction direction, int64_t from, int64_t to) const {
  if (from > to) return 0;
  const Fenwick& sums = sums_[static_cast<size_t>(direction)];
  const size_t a = Fold(from), b = Fold(to);
  const int64_t head = sums.Prefix(b + 1), tail = sums.Prefix(a);
  return a <= b ? head - tail : sums.Prefix(sums.size()) - tail + head;
}

void LinkBudget::Take(Direction direction, int64_t window, int64_t bytes,
                      std::vector<Share>& shares) {
  used_[static_cast<int>(direction)][Fold(window)] += bytes;
  Refresh(Fold(window));
  shares.push_back({window, bytes});
}

std::vector<LinkBudget::Share> LinkBudget::TakeEarliest(Direction direction, int64_t from,
                                                        int64_t to, int64_t bytes) {
  std::vector<Share> shares;
  const Fenwick& sums = sums_[static_cast<size_t>(direction)];
  const auto& free = free_[static_cast<int>(direction)];
  while (bytes > 0 && from <= to) {
    const size_t a = Fold(from);
    const size_t next = sums.Reach(sums.Prefix(a) + 1);  // first window from a with room
    from += static_cast<int64_t>(next - a);
    if (next == sums.size() || from > to) continue;
    const int64_t part = std::min(bytes, free[next]);
    Take(direction, from, part, shares);
    bytes -= part;
    ++from;
  }
  return shares;
}

std::vector<LinkBudget::Share> LinkBudget::TakeLatest(Direction direction, int64_t from, int64_t to,
                                                      int64_t bytes) {
  std::vector<Share> shares;
  const Fenwick& sums = sums_[static_cast<size_t>(direction)];
  const auto& free = free_[static_cast<int>(direction)];
  while (bytes > 0 && from <= to) {
    const size_t b = Fold(to);
    const int64_t upto = sums.Prefix(b + 1);
    if (upto == 0) {  // nothing down to the start of the period
      to -= static_cast<int64_t>(b) + 1;
      continue;
    }
    const size_t last = sums.Reach(upto);
    to -= static_cast<int64_t>(b - last);
    if (to < from) break;
    const int64_t part = std::min(bytes, free[last]);
    Take(direction, to, part, shares);
    bytes -= part;
    --to;
  }
  return shares;
}

void LinkBudget::GiveBack(Direction direction, const Share& share) {
  used_[static_cast<int>(direction)][Fold(share.window)] -= share.bytes;
  Refresh(Fold(share.window));
}

int64_t LinkBudget::LastStart(Direction direction, int64_t from, int64_t to, int64_t bytes) const {
  const Fenwick& sums = sums_[static_cast<size_t>(direction)];
  const size_t b = Fold(to);
  int64_t window;
  int64_t target = sums.Prefix(b + 1) - bytes;  // [w, to] has enough while Prefix(w) <= target
  if (target >= 0) {
    window = to - static_cast<int64_t>(b) + static_cast<int64_t>(sums.Reach(target + 1));
  } else {
    target += sums.Prefix(sums.size());
    if (target < 0) return from - 1;
    window = to - static_cast<int64_t>(b) - static_cast<int64_t>(sums.size()) +
             static_cast<int64_t>(sums.Reach(target + 1));
  }
  return std::max(std::min(window, to), from - 1);
}

void LinkBudget::LengthenFor(int64_t window, Direction direction, int64_t bytes) {
  const size_t w = Fold(window);
  const int64_t goal = free_[static_cast<int>(direction)][w] + bytes;
  // Twice suffices for independent links; a coupled window may yield less for each second.
  for (int round = 0; round < 64; ++round) {
    const int64_t missing = goal - free_[static_cast<int>(direction)][w];
    if (missing <= 0) return;
    seconds_[w] += (static_cast<double>(missing) + 1) / Rate(direction);
    Refresh(w);
  }
}

void LinkBudget::Lengthen(int64_t window, double seconds) {
  seconds_[Fold(window)] += seconds;
  Refresh(Fold(window));
}

double LinkBudget::RateBeside(Direction direction, double other) const {
  double rate;
  if (direction == Direction::kIn) {
    rate = (1 - other * region_.b1) / region_.a1;
    if (region_.b2 > 0) rate = std::min(rate, (1 - other * region_.a2) / region_.b2);
  } else {
    rate = (1 - other * region_.b2) / region_.a2;
    if (region_.b1 > 0) rate = std::min(rate, (1 - other * region_.a1) / region_.b1);
  }
  return std::max(rate, 0.0);
}

double LinkBudget::PlannedRate(Direction direction, size_t window) const {
  if (!region_.coupled || seconds_[window] <= 0) return Rate(direction);
  const Direction back = direction == Direction::kIn ? Direction::kOut : Direction::kIn;
  return RateBeside(direction, static_cast<double>(Used(back, window)) / seconds_[window]);
}

}  // namespace atp::policy
