// SPDX-License-Identifier: Apache-2.0
// A set of 4 KiB pages inside one 2 MiB block: the unit of state of the unified-memory model.
//
// Used by every file of the model; plain value, no locks. NVIDIA's driver keeps the same bitmaps in
// each VA block (uvm_va_block_types.h in NVIDIA/open-gpu-kernel-modules 595.45.04).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace atp::sim {

class PageMask {
 public:
  static constexpr int kPages = 512;

  static PageMask All() { return Range(0, kPages); }

  static PageMask Range(int first, int count) {
    PageMask mask;
    mask.SetRange(first, count);
    return mask;
  }

  bool Test(int page) const { return (words_[page >> 6] >> (page & 63)) & 1; }
  void Set(int page) { words_[page >> 6] |= uint64_t{1} << (page & 63); }
  void Clear(int page) { words_[page >> 6] &= ~(uint64_t{1} << (page & 63)); }

  void SetRange(int first, int count) {
    for (int word = first >> 6; count > 0; ++word) {
      int shift = first & 63;
      int width = count < 64 - shift ? count : 64 - shift;
      words_[word] |= (width == 64 ? ~uint64_t{0} : ((uint64_t{1} << width) - 1)) << shift;
      first += width;
      count -= width;
    }
  }

  bool Any() const {
    uint64_t any = 0;
    for (uint64_t word : words_) any |= word;
    return any != 0;
  }
  bool None() const { return !Any(); }

  int Count() const {
    int count = 0;
    for (uint64_t word : words_) count += std::popcount(word);
    return count;
  }

  // Pages of the set inside [first, first + count).
  int CountRange(int first, int count) const { return (*this & Range(first, count)).Count(); }

  // The first page of the set at or after `from`, kPages when there is none.
  int Next(int from) const {
    if (from >= kPages) return kPages;
    int word = from >> 6;
    uint64_t bits = words_[word] & (~uint64_t{0} << (from & 63));
    while (bits == 0) {
      if (++word == static_cast<int>(words_.size())) return kPages;
      bits = words_[word];
    }
    return word * 64 + std::countr_zero(bits);
  }

  // Number of runs of neighbouring pages: one copy method each.
  int Runs() const {
    int runs = 0;
    uint64_t carry = 0;
    for (uint64_t word : words_) {
      runs += std::popcount(word & ~((word << 1) | carry));
      carry = word >> 63;
    }
    return runs;
  }

  PageMask operator&(const PageMask& other) const {
    PageMask result = *this;
    return result &= other;
  }
  PageMask operator|(const PageMask& other) const {
    PageMask result = *this;
    return result |= other;
  }
  // Set difference.
  PageMask operator-(const PageMask& other) const {
    PageMask result = *this;
    return result -= other;
  }
  PageMask& operator&=(const PageMask& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  PageMask& operator|=(const PageMask& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  PageMask& operator-=(const PageMask& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
    return *this;
  }
  bool operator==(const PageMask& other) const = default;

 private:
  std::array<uint64_t, kPages / 64> words_{};
};

}  // namespace atp::sim
