// SPDX-License-Identifier: Apache-2.0
#include "policy/successors.h"

#include <algorithm>

namespace atp::policy {

Successors::Successors(uint32_t entries) {
  for (auto& table : tables_) table.resize(std::max(entries, 1u));
}

uint64_t Successors::Context(const Last& last, uint32_t depth) {
  uint64_t hash = depth;
  for (uint32_t i = 0; i < depth; ++i) {
    hash = (hash ^ last[i]) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  return hash | 1;  // never 0, which marks a free entry
}

void Successors::Feed(uint64_t launch) {
  for (uint32_t depth = 1; depth <= kDepth && depth <= fed_; ++depth) {
    const uint64_t context = Context(last_, depth);
    Entry& entry = At(depth, context);
    if (entry.context != context) {
      if (entry.votes > 0) {
        --entry.votes;
        continue;
      }
      entry = {context, launch, 1, 0, 0};
      continue;
    }
    ++entry.seen;
    if (entry.next == launch) {
      ++entry.right;
      entry.votes = std::min(entry.votes + 1, 64u);
    } else if (--entry.votes == 0) {
      entry.next = launch, entry.votes = 1;
    }
    if (entry.seen >= 64) entry.seen /= 2, entry.right /= 2;  // the past fades
  }
  std::copy_backward(last_.begin(), last_.end() - 1, last_.end());
  last_[0] = launch;
  ++fed_;
}

// The longest known context decides.
const Successors::Entry* Successors::Find(const Last& last) const {
  for (uint32_t depth = kDepth; depth >= 1; --depth) {
    const uint64_t context = Context(last, depth);
    const Entry& entry = tables_[depth - 1][context % tables_[depth - 1].size()];
    if (entry.context == context) return &entry;
  }
  return nullptr;
}

size_t Successors::Predict(Guess* guesses, size_t most, double least) const {
  if (fed_ < kDepth) return 0;
  Last last = last_;
  double confidence = 1;
  size_t count = 0;
  while (count < most) {
    const Entry* entry = Find(last);
    if (entry == nullptr) break;
    // Laplace's rule, leaning on the one time that made the entry.
    confidence *= (entry->right + 1.0) / (entry->seen + 1.0);
    if (confidence < least) break;
    guesses[count++] = {entry->next, confidence};
    std::copy_backward(last.begin(), last.end() - 1, last.end());
    last[0] = entry->next;
  }
  return count;
}

}  // namespace atp::policy
