// SPDX-License-Identifier: Apache-2.0
// The last launch signatures with prefix hashes, so that two stretches of them are compared in
// O(1). Part of the period detector. All memory is reserved at the start and becomes real as it is
// used: pushing never allocates. One thread.
//
// Hash: polynomial over the prime 2^61 - 1 (Rabin and Karp).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>

namespace atp::policy {

class LaunchHistory {
 public:
  explicit LaunchHistory(uint64_t limit);  // launches kept at least

  void Push(uint64_t signature);
  uint64_t count() const { return count_; }  // all pushed so far
  uint64_t oldest() const;                   // index of the oldest one still known
  uint64_t At(uint64_t index) const { return signatures_[index & mask_]; }
  // Hash of [begin, end), which must be known.
  uint64_t Hash(uint64_t begin, uint64_t end) const;
  // How many of the last launches equal those `distance` before them.
  uint64_t RunAt(uint64_t distance) const;

  static uint64_t Append(uint64_t hash, uint64_t signature);  // hash of a stretch and one more

 private:
  struct Free {
    void operator()(uint64_t* row) const { std::free(row); }
  };
  using Row = std::unique_ptr<uint64_t[], Free>;
  static Row Zeros(uint64_t count);

  uint64_t count_ = 0, mask_;
  Row signatures_, prefix_, power_;  // prefix_[i]: hash of all before launch i
  uint64_t total_ = 0;               // hash of all
};

}  // namespace atp::policy
