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
  // Index of the oldest one still known.
  uint64_t oldest() const { return count_ > mask_ + 1 ? count_ - mask_ - 1 : 0; }
  uint64_t At(uint64_t index) const { return signatures_[index & mask_]; }
  // Hash of [begin, end), which must be known.
  uint64_t Hash(uint64_t begin, uint64_t end) const {
    const uint64_t upto = end == count_ ? total_ : prefix_[end & mask_];
    const uint64_t before = Multiply(prefix_[begin & mask_], power_[end - begin]);
    return upto >= before ? upto - before : upto + kPrime - before;
  }
  // How many of the last launches equal those `distance` before them.
  uint64_t RunAt(uint64_t distance) const;

  // Hash of a stretch and one more.
  static uint64_t Append(uint64_t hash, uint64_t signature) {
    const uint64_t sum = Multiply(hash, kBase) + Digit(signature);
    return sum >= kPrime ? sum - kPrime : sum;
  }

 private:
  static constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
  static constexpr uint64_t kBase = 0x123456789ABCDEFull % kPrime;
  static uint64_t Multiply(uint64_t a, uint64_t b) {
    const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
    const uint64_t sum =
        (static_cast<uint64_t>(product) & kPrime) + static_cast<uint64_t>(product >> 61);
    return sum >= kPrime ? sum - kPrime : sum;
  }
  // Spreads a signature over [1, prime): equal signatures stay equal, zero is no special case.
  static uint64_t Digit(uint64_t signature) {
    signature ^= signature >> 32;
    signature *= 0x9E3779B97F4A7C15ull;
    signature ^= signature >> 29;
    return signature % (kPrime - 1) + 1;
  }
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
