// SPDX-License-Identifier: Apache-2.0
#include "shim/debts.h"

#include <algorithm>

namespace atp::shim {

constinit std::atomic<uint32_t> g_owing{0};

void Debts::Follow(std::shared_ptr<const Schedule> schedule) {
  KeepAll();
  schedule_ = std::move(schedule);
  made_.assign(schedule_ == nullptr ? 0 : schedule_->drops.size(), 0);
}

void Debts::Made(uint32_t drop, uint64_t period) {
  if (made_[drop] == 0) g_owing.fetch_add(1);
  made_[drop] = period + 1;
}

void Debts::Keep(uint32_t drop) {
  if (made_[drop] != 0) g_owing.fetch_sub(1);
  made_[drop] = 0;
}

void Debts::KeepAll() {
  for (uint32_t d = 0; d < made_.size(); ++d) Keep(d);
}

bool Debts::Begin(uint32_t drop, uint64_t period) {
  if (drop >= made_.size() || made_[drop] != period + 1) return false;
  made_[drop] = 0;  // it is counted already
  debts_.push_back({schedule_, drop, State::kDropping});
  return true;
}

// One that is being dropped is the only one of its place: it is made again, and paid, before that.
void Debts::Dropped(uint32_t drop) {
  for (Debt& debt : debts_) {
    if (debt.drop == drop && debt.state == State::kDropping) debt.state = State::kDropped;
  }
}

bool Debts::paying() const {
  return std::any_of(debts_.begin(), debts_.end(),
                     [](const Debt& debt) { return debt.state == State::kPaying; });
}

bool Debts::Due(uint32_t before) const {
  return std::any_of(debts_.begin(), debts_.end(),
                     [&](const Debt& debt) { return debt.range().before <= before; });
}

bool Debts::Busy(uint32_t before) const {
  return std::any_of(debts_.begin(), debts_.end(), [&](const Debt& debt) {
    const bool dropping = debt.state == State::kDropping && debt.range().before <= before;
    return dropping || debt.state == State::kPaying;
  });
}

Debts::Debt Debts::Take(uint32_t before) {
  Debt* first = nullptr;
  for (Debt& debt : debts_) {
    if (debt.range().before > before) continue;
    if (first == nullptr || debt.range().producer < first->range().producer) first = &debt;
  }
  first->state = State::kPaying;
  return *first;
}

void Debts::Paid(bool done) {
  const auto is_paying = [](const Debt& debt) { return debt.state == State::kPaying; };
  const auto debt = std::find_if(debts_.begin(), debts_.end(), is_paying);
  if (debt == debts_.end()) return;  // void meanwhile
  debt->state = State::kDropped;
  if (!done) return;
  debts_.erase(debt);
  g_owing.fetch_sub(1);
}

void Debts::Void() {
  g_owing.fetch_sub(static_cast<uint32_t>(debts_.size()));
  debts_.clear();
  KeepAll();
}

}  // namespace atp::shim
