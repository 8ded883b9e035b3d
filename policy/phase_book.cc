// SPDX-License-Identifier: Apache-2.0
#include "policy/phase_book.h"

#include <algorithm>

namespace atp::policy {

uint32_t PhaseBook::FindExact(uint64_t hash, uint64_t length) const {
  for (uint32_t p = 0; p < phases_.size(); ++p) {
    if (phases_[p].length() == length && phases_[p].prefix.back() == hash) return p;
  }
  return kNone;
}

uint32_t PhaseBook::Add(const LaunchHistory& history, uint64_t begin, uint64_t end) {
  const uint32_t known = FindExact(history.Hash(begin, end), end - begin);
  if (known != kNone) return known;
  while (!phases_.empty() &&
         (phases_.size() >= most_phases_ || launches_ + (end - begin) > most_launches_)) {
    Forget();
  }
  Phase phase;
  phase.id = next_id_++;
  phase.used = history.count();
  phase.signatures.reserve(end - begin);
  phase.prefix.reserve(end - begin + 1);
  phase.prefix.push_back(0);
  for (uint64_t i = begin; i < end; ++i) {
    phase.signatures.push_back(history.At(i));
    phase.prefix.push_back(LaunchHistory::Append(phase.prefix.back(), history.At(i)));
  }
  launches_ += end - begin;
  phases_.push_back(std::move(phase));
  Index(size() - 1);
  return size() - 1;
}

void PhaseBook::Forget() {
  const auto oldest = std::min_element(phases_.begin(), phases_.end(),
                                       [](const auto& a, const auto& b) { return a.used < b.used; });
  launches_ -= oldest->length();
  phases_.erase(oldest);
  grams_.clear();
  for (uint32_t p = 0; p < size(); ++p) Index(p);
}

void PhaseBook::Index(uint32_t phase) {
  const auto& signatures = phases_[phase].signatures;
  const uint32_t n = phases_[phase].length();
  for (uint32_t last = 0; last < n; ++last) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < kGram; ++i) {
      hash = LaunchHistory::Append(hash, signatures[(last + uint64_t{n} * kGram - kGram + 1 + i) % n]);
    }
    const auto [it, added] = grams_.try_emplace(hash, Gram{phase, last, true});
    if (added) continue;
    Gram& gram = it->second;
    if (gram.phase == phase) {
      gram.unique = false;
    } else if (n > phases_[gram.phase].length()) {
      gram = {phase, last, true};
    }
  }
}

PhaseBook::Place PhaseBook::FindLast(const LaunchHistory& history) const {
  if (history.count() < kGram || grams_.empty()) return {};
  const auto it = grams_.find(history.Hash(history.count() - kGram, history.count()));
  if (it == grams_.end() || !it->second.unique) return {};
  return {it->second.phase, it->second.position};
}

uint32_t PhaseBook::FindBranch(uint32_t phase, uint32_t position, uint64_t signature) const {
  const uint64_t prefix = phases_[phase].prefix[position];
  uint32_t best = kNone;
  for (uint32_t p = 0; p < size(); ++p) {
    const Phase& other = phases_[p];
    if (p == phase || other.length() <= position || other.signatures[position] != signature) continue;
    if (other.prefix[position] != prefix) continue;
    if (best == kNone || other.used > phases_[best].used) best = p;
  }
  return best;
}

}  // namespace atp::policy
