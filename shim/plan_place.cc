// SPDX-License-Identifier: Apache-2.0
#include "shim/plan_place.h"

namespace atp::shim {

uint32_t PlanPlace::Pass(uint64_t signature) {
  readers_.fetch_add(1);
  const uint64_t word = word_.load();  // before the plan: that one is as new as the word, or newer
  const uint32_t position = word == 0 ? kNowhere : Advance(word, *shown_.load(), signature);
  readers_.fetch_sub(1);
  return position;
}

// If `schedule` is newer than the word, the word is another one by now, and the exchange fails.
uint32_t PlanPlace::Advance(uint64_t word, const Schedule& schedule, uint64_t signature) {
  for (uint64_t seen = word; Generation(seen) == Generation(word);) {
    const uint32_t next = PositionIn(seen) + 1;
    if (!schedule.IsIdle(next) || schedule.signatures[next] != signature) return kNowhere;
    if (word_.compare_exchange_weak(seen, seen + 1)) return next;
  }
  return kNowhere;
}

void PlanPlace::Open(const std::shared_ptr<const Schedule>& schedule, uint64_t generation,
                     uint32_t position) {
  if (schedule_ != schedule) {
    if (schedule_ != nullptr) retired_.push_back(std::move(schedule_));
    schedule_ = schedule;
    shown_.store(schedule_.get());
    if (readers_.load() == 0) retired_.clear();
  }
  word_.store(Word(generation, position));
}

uint32_t PlanPlace::PassLocked(uint64_t signature) {
  const uint64_t word = word_.load();
  return word == 0 ? kNowhere : Advance(word, *schedule_, signature);
}

uint32_t PlanPlace::Close(uint32_t position) {
  const uint64_t word = word_.exchange(0);
  return word == 0 ? position : PositionIn(word);
}

bool PlanPlace::CloseAt(uint32_t position) {
  uint64_t word = word_.load();
  return word == 0 || (PositionIn(word) == position && word_.compare_exchange_strong(word, 0));
}

}  // namespace atp::shim
