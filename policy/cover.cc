// SPDX-License-Identifier: Apache-2.0
#include "policy/cover.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "policy/overflow_row.h"

namespace atp::policy {
namespace {

// Furthest next use over many periods.
class Belady {
 public:
  Belady(const Lifetimes& life, const CoverOptions& options)
      : life_(life),
        options_(options),
        n_(static_cast<int64_t>(life.live.size())),
        by_first_(static_cast<size_t>(n_)) {
    for (uint32_t i = 0; i < life.intervals.size(); ++i) {
      const auto& interval = life.intervals[i];
      by_first_[(interval.last_use + 1) % life.live.size()].push_back(i);
    }
    taken_.assign(life.intervals.size(), 0);
    total_.assign(life.intervals.size(), 0);
  }

  // Runs `warm` periods to reach the steady state, then adds up the bytes of `counted` more. Some
  // launches may not be covered: what is back early because of `returning` does not leave again.
  void Run(int64_t warm, int64_t counted) {
    for (int64_t k = 0; k < (warm + counted) * n_; ++k) {
      counting_ = k >= warm * n_;
      Step(k);
    }
  }
  const std::vector<int64_t>& total() const { return total_; }

 private:
  struct Candidate {
    int64_t back;  // launch, over all periods, before which it is on the device again
    uint32_t interval;
    int64_t first;
    bool operator<(const Candidate& other) const {
      return back != other.back ? back < other.back : interval > other.interval;
    }
  };
  using Heap = std::priority_queue<Candidate>;
  struct Return {
    int64_t back, bytes;
    bool operator>(const Return& other) const { return back > other.back; }
  };

  void Step(int64_t k) {
    while (!returns_.empty() && returns_.top().back <= k) {
      away_ -= returns_.top().bytes;
      returns_.pop();
    }
    for (uint32_t i : by_first_[static_cast<size_t>(k % n_)]) Begin(i, k);
    while (!late_.empty() && late_.top().first <= k) {
      inner_.push(late_.top().candidate);
      late_.pop();
    }
    int64_t need =
        static_cast<int64_t>(life_.live[static_cast<size_t>(k % n_)]) - options_.memory - away_;
    for (Heap* heap : {&inner_, &whole_}) need = Take(*heap, k, need);
  }

  void Begin(uint32_t i, int64_t k) {
    const auto& interval = life_.intervals[i];
    taken_[i] = 0;
    const int64_t back = k + interval.next_use - interval.last_use - 1;
    whole_.push({back, i, k});
    const int64_t first = k + options_.leaving, early = back - options_.returning;
    if (options_.leaving + options_.returning > 0 && first < early)
      late_.push({first, {early, i, k}});
  }

  int64_t Take(Heap& heap, int64_t k, int64_t need) {
    while (need > 0 && !heap.empty() && heap.top().back > k) {
      const Candidate top = heap.top();
      const int64_t size = static_cast<int64_t>(life_.intervals[top.interval].bytes);
      const int64_t left = size - taken_[top.interval];
      const int64_t granules = (need + options_.granule - 1) / options_.granule;
      const int64_t bytes = options_.whole ? left : std::min(left, granules * options_.granule);
      if (bytes == left) heap.pop();
      if (bytes <= 0) continue;
      taken_[top.interval] += bytes;
      if (counting_) total_[top.interval] += bytes;
      away_ += bytes;
      need -= bytes;
      returns_.push({top.back, bytes});
    }
    return need;
  }

  struct Later {
    int64_t first;
    Candidate candidate;
    bool operator>(const Later& other) const { return first > other.first; }
  };

  const Lifetimes& life_;
  const CoverOptions& options_;
  int64_t n_, away_ = 0;
  bool counting_ = false;
  std::vector<std::vector<uint32_t>> by_first_;
  std::vector<int64_t> taken_, total_;  // of the present instance; over all counted periods
  Heap inner_, whole_;
  std::priority_queue<Later, std::vector<Later>, std::greater<>> late_;
  std::priority_queue<Return, std::vector<Return>, std::greater<>> returns_;
};

// Whole granules: what rounding takes from one interval it gives to the next.
std::vector<int64_t> Mean(const Lifetimes& life, const std::vector<int64_t>& total, int64_t count,
                          int64_t granule) {
  std::vector<int64_t> amounts(total.size());
  int64_t carry = 0;  // in bytes, times count
  for (size_t i = 0; i < total.size(); ++i) {
    const int64_t size = static_cast<int64_t>(life.intervals[i].bytes);
    if (total[i] <= 0) continue;
    const int64_t want = total[i] + carry;
    int64_t whole = std::max<int64_t>(0, (want + count * granule / 2) / (count * granule));
    whole = std::min(whole * granule, size);
    carry = want - whole * count;
    carry = std::clamp(carry, -count * granule, count * granule);
    amounts[i] = whole;
  }
  return amounts;
}

// Adds granules until every launch fits, to what is needed again latest.
bool Complete(const Lifetimes& life, const CoverOptions& options, std::vector<int64_t>* amounts) {
  const int64_t n = static_cast<int64_t>(life.live.size());
  std::vector<int64_t> over;
  for (Bytes live : life.live) over.push_back(static_cast<int64_t>(live) - options.memory);
  OverflowRow row(over);
  auto away = [&](const InactiveInterval& interval, int64_t bytes) {
    const int64_t first = interval.last_use + 1, last = interval.next_use - 1;
    row.Add(first, std::min(last, n - 1), -bytes);
    if (last >= n) row.Add(std::max<int64_t>(first - n, 0), last - n, -bytes);
  };
  struct Candidate {
    int64_t back;
    uint32_t interval;
    bool operator<(const Candidate& other) const {
      return back != other.back ? back < other.back : interval > other.interval;
    }
  };
  std::vector<Candidate> begun;  // before launch 0
  std::vector<std::vector<uint32_t>> by_first(static_cast<size_t>(n));
  for (uint32_t i = 0; i < life.intervals.size(); ++i) {
    const auto& interval = life.intervals[i];
    away(interval, (*amounts)[i]);
    if (interval.last_use + 1 < n) by_first[interval.last_use + 1].push_back(i);
    if (interval.next_use > n) begun.push_back({interval.next_use - n, i});
  }
  std::priority_queue<Candidate> heap(std::less<Candidate>{}, std::move(begun));
  for (int64_t k = 0; k < n; ++k) {
    for (uint32_t i : by_first[static_cast<size_t>(k)]) heap.push({life.intervals[i].next_use, i});
    for (int64_t need = row[k]; need > 0; need = row[k]) {
      if (heap.empty() || heap.top().back <= k) return false;
      const uint32_t i = heap.top().interval;
      const int64_t left = static_cast<int64_t>(life.intervals[i].bytes) - (*amounts)[i];
      const int64_t bytes =
          std::min(left, (need + options.granule - 1) / options.granule * options.granule);
      if (bytes == left) heap.pop();
      (*amounts)[i] += bytes;
      away(life.intervals[i], bytes);
    }
  }
  return true;
}

}  // namespace

std::vector<int64_t> FitAmounts(const Lifetimes& life, const std::vector<int64_t>& sums,
                                int64_t periods, const CoverOptions& options) {
  std::vector<int64_t> amounts = Mean(life, sums, periods, options.granule);
  if (!Complete(life, options, &amounts)) return {};
  return amounts;
}

std::vector<int64_t> CoverAmounts(const Lifetimes& life, const CoverOptions& options) {
  constexpr int64_t kWarm = 2;
  if (life.live.empty()) return {};
  Belady belady(life, options);
  belady.Run(kWarm, options.periods);
  return FitAmounts(life, belady.total(), options.periods, options);
}

}  // namespace atp::policy
