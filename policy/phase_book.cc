// SPDX-License-Identifier: Apache-2.0
#include "policy/phase_book.h"

#include <algorithm>

namespace atp::policy {

uint32_t PhaseBook::FindExact(uint64_t hash, uint64_t length) const {
  for (uint32_t p = 0; p < phases_.size() && length > 0; ++p) {
    if (phases_[p].length() == length && phases_[p].prefix.back() == hash) return p;
  }
  return kNone;
}

uint32_t PhaseBook::Add(const LaunchHistory& history, uint64_t begin, uint64_t end, uint32_t keep) {
  const uint32_t known = FindExact(history.Hash(begin, end), end - begin);
  if (known != kNone) return known;
  const uint32_t slot = FreeSlot(end - begin, keep);
  Phase& phase = phases_[slot];
  phase.id = next_id_++;
  phase.followed = 0;
  phase.prefix.push_back(0);
  for (uint64_t i = begin; i < end; ++i) {
    phase.signatures.push_back(history.At(i));
    phase.prefix.push_back(LaunchHistory::Append(phase.prefix.back(), history.At(i)));
  }
  launches_ += end - begin;
  Index(slot);
  return slot;
}

uint32_t PhaseBook::FreeSlot(uint64_t launches, uint32_t keep) {
  while (true) {
    uint32_t free = kNone, least = kNone;
    for (uint32_t p = 0; p < phases_.size(); ++p) {
      if (phases_[p].length() == 0) {
        free = p;
      } else if (p != keep && (least == kNone || phases_[p].followed < phases_[least].followed)) {
        least = p;
      }
    }
    const bool room = launches_ + launches <= most_launches_ || least == kNone;
    if (free != kNone && room) return free;
    Forget(least);
  }
}

void PhaseBook::Forget(uint32_t phase) {
  EachGram(phase, [&](uint64_t hash, uint32_t) {
    const auto it = grams_.find(hash);
    if (it != grams_.end() && it->second.phase == phase) grams_.erase(it);
  });
  launches_ -= phases_[phase].length();
  phases_[phase].signatures.clear();
  phases_[phase].prefix.clear();
}

// Visits the hash of the kGram launches that end at each position; the phase counts as repeating.
template <typename Visit>
void PhaseBook::EachGram(uint32_t phase, Visit visit) const {
  const auto& signatures = phases_[phase].signatures;
  const uint64_t n = signatures.size();
  for (uint32_t last = 0; last < n; ++last) {
    uint64_t hash = 0;
    for (uint64_t back = kGram; back-- > 0;) {
      hash = LaunchHistory::Append(hash, signatures[(last + n * kGram - back) % n]);
    }
    visit(hash, last);
  }
}

void PhaseBook::Index(uint32_t phase) {
  EachGram(phase, [&](uint64_t hash, uint32_t last) {
    const auto [it, added] = grams_.try_emplace(hash, Gram{phase, last, true});
    if (added) return;
    Gram& gram = it->second;
    if (gram.phase == phase) {
      gram.unique = false;
    } else if (phases_[phase].length() > phases_[gram.phase].length()) {
      gram = {phase, last, true};
    }
  });
}

PhaseBook::Place PhaseBook::FindLast(const LaunchHistory& history) const {
  if (history.count() < kGram || grams_.empty()) return {};
  const auto it = grams_.find(history.Hash(history.count() - kGram, history.count()));
  if (it == grams_.end() || !it->second.unique) return {};
  return {it->second.phase, it->second.position};
}

uint32_t PhaseBook::FindBranch(uint64_t prefix, uint32_t position, uint64_t signature,
                               uint32_t not_this) const {
  uint32_t best = kNone;
  for (uint32_t p = 0; p < phases_.size(); ++p) {
    const Phase& phase = phases_[p];
    if (p == not_this || phase.length() <= position) continue;
    if (phase.signatures[position] != signature || phase.prefix[position] != prefix) continue;
    if (best == kNone || phase.followed > phases_[best].followed) best = p;
  }
  return best;
}

}  // namespace atp::policy
