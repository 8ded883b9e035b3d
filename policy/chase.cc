// SPDX-License-Identifier: Apache-2.0
#include "policy/chase.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "policy/period_play.h"

namespace atp::policy {
namespace {

constexpr int64_t kWarm = 3;  // periods that are not counted
constexpr int64_t kHeld = 3;  // the last ones, held to the times of the one before
// Granules that the way out keeps free ahead of the way back, so that both are busy at once.
constexpr int64_t kFree = 4;
constexpr int64_t kAhead = 8;  // launches for whose new data room is made in turn with fetches

class Chase : public PeriodPlay {
 public:
  Chase(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
        const std::vector<bool>& copied, const CoverOptions& options)
      : PeriodPlay(trace, life, rates, copied, options.memory, /*turnaround=*/0),
        granule_(options.granule),
        ending_(trace.launches.size()),
        present_(life.intervals.size()),
        free_(options.periods) {
    for (uint32_t i = 0; i < life.intervals.size(); ++i) {
      ending_[life.intervals[i].next_use % trace.launches.size()].push_back(i);
    }
  }
  std::vector<std::vector<int64_t>>& left() { return left_; }

 private:
  struct Present {  // the instance of an interval that waits now
    int64_t needed = 0;
    int32_t period = 0;
    int64_t left = 0;  // bytes that have gone, or are going
  };

  void Begin(uint32_t i, int64_t period) override {
    present_[i] = {static_cast<int64_t>(life_.intervals[i].next_use) + period * n_,
                   static_cast<int32_t>(period), 0};
    waiting_.insert({present_[i].needed, i});
  }
  void Enter(int64_t launch) override {
    for (uint32_t i : ending_[static_cast<size_t>(launch % n_)]) waiting_.erase({launch, i});
  }
  void EnterPeriod(int64_t period) override {
    counting_ = period >= kWarm && period < kWarm + free_;
    if (counting_) left_.emplace_back(life_.intervals.size(), 0);
  }

  void Pump() override {
    while (!clock_.Busy(Direction::kOut) && EvictFurthest()) {
    }
    if (clock_.Busy(Direction::kIn) || gone_.empty()) return;
    if (Held() + gone_.top().bytes + Reserve() <= memory_) Fetch();
  }

  // The first launch, of the next few and not after `last`, that lacks room for what is born in it
  // or before it; -1 if none does.
  int64_t FirstLacking(int64_t last) const {
    last = std::min(last, Coming() + std::min(kAhead, n_ - 1));
    for (int64_t k = Coming(); k <= last; ++k) {
      if (LackingAt(k) > 0) return k;
    }
    return -1;
  }
  // Room that is born data's before it is that of a fetch for a later launch.
  int64_t Reserve() const {
    int64_t most = 0;
    const int64_t last = std::min(gone_.top().needed - 1, Coming() + std::min(kAhead, n_ - 1));
    for (int64_t k = Coming(); k <= last; ++k) {
      most = std::max(most, LackingAt(k) + memory_ - Held());
    }
    return most;
  }
  // The launch for whose data, fetched or born, room is to be made; -1 if there is enough.
  int64_t WantsRoom() const {
    const int64_t needed = gone_.empty() ? INT64_MAX : gone_.top().needed;
    if (const int64_t k = FirstLacking(needed); k >= 0) return k;
    if (gone_.empty()) return -1;
    const int64_t room = Held() + gone_.top().bytes + Reserve() + kFree * granule_;
    return room > memory_ ? needed : -1;
  }

  // What is needed latest, and later than what it makes room for.
  bool EvictFurthest() {
    const int64_t beyond = WantsRoom();
    if (beyond < 0) return false;
    if (waiting_.empty() || waiting_.rbegin()->first <= beyond) return false;
    const uint32_t i = waiting_.rbegin()->second;
    Present& present = present_[i];
    const int64_t here = static_cast<int64_t>(life_.intervals[i].bytes) - present.left;
    const Job job{present.needed, i, present.period, present.left, std::min(granule_, here)};
    present.left += job.bytes;
    if (job.bytes == here) waiting_.erase({present.needed, i});
    if (counting_) left_.back()[i] += job.bytes;
    Announce(job);
    Evict(job);
    return true;
  }

  const int64_t granule_;
  std::vector<std::vector<uint32_t>> ending_;       // intervals by next use
  std::vector<Present> present_;                    // by interval
  std::set<std::pair<int64_t, uint32_t>> waiting_;  // by next use: intervals with bytes here
  const int64_t free_;                              // periods that are counted
  bool counting_ = false;
  std::vector<std::vector<int64_t>> left_;  // in each counted period, by interval
};

}  // namespace

ChaseResult ChaseUses(const Trace& trace, const Lifetimes& life, const LinkRates& rates,
                      const std::vector<bool>& copied, const CoverOptions& options) {
  ChaseResult result;
  if (life.live.empty()) return result;
  Chase chase(trace, life, rates, copied, options);
  const int64_t held_from = kWarm + options.periods;
  result.repeats = chase.Play(held_from + kHeld, held_from, &result.layout);
  result.left = std::move(chase.left());
  return result;
}

}  // namespace atp::policy
