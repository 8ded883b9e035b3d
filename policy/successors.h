// SPDX-License-Identifier: Apache-2.0
// What is likely to be launched next, before a period is known: tables from the last three, two and
// one launches to the one that followed (the execution tables of DeepUM, ASPLOS'23, which key on
// the last kernels). Fixed memory, allocated at construction; O(1) a launch; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace atp::policy {

class Successors {
 public:
  static constexpr uint32_t kDepth = 3;

  struct Guess {
    uint64_t launch = 0;
    double confidence = 0;  // product of the shares with which each step of the chain came true
  };

  explicit Successors(uint32_t entries = 1u << 14);  // for each depth

  void Feed(uint64_t launch);
  // The next launches, nearest first, as long as the chain is known and its confidence is at least
  // `least`. Returns how many were written to `guesses`.
  size_t Predict(Guess* guesses, size_t most, double least = 0.5) const;

 private:
  // One context and its most frequent successor (majority vote of Boyer and Moore); an entry is
  // taken over by another context when its vote has run out.
  struct Entry {
    uint64_t context = 0, next = 0;
    uint32_t votes = 0, seen = 0, right = 0;
  };
  using Last = std::array<uint64_t, kDepth>;  // the latest first

  static uint64_t Context(const Last& last, uint32_t depth);
  Entry& At(uint32_t depth, uint64_t context) {
    return tables_[depth - 1][context % tables_[depth - 1].size()];
  }
  const Entry* Find(const Last& last) const;

  std::array<std::vector<Entry>, kDepth> tables_;
  Last last_{};
  uint64_t fed_ = 0;
};

}  // namespace atp::policy
