// SPDX-License-Identifier: Apache-2.0
// What the integer instructions of reach_code.h compute, as the PTX ISA says. Pure functions. For
// reach_run.cc only.
#pragma once

#include <cstdint>

#include "ptx/reach_code.h"

namespace atp::ptx {

// The lowest `width` bytes; of a predicate (0) one bit.
inline uint64_t Cut(uint64_t bits, unsigned width) {
  return width >= 8 ? bits : bits & ((uint64_t{1} << (width == 0 ? 1 : 8 * width)) - 1);
}
inline int64_t Signed(uint64_t bits, unsigned width) {
  const unsigned shift = width >= 8 || width == 0 ? 0 : 64 - 8 * width;
  return static_cast<int64_t>(bits << shift) >> shift;
}
// A source of the step, extended by its sign if it has one.
inline uint64_t Extended(uint64_t bits, const ReachStep& step) {
  return step.is_signed ? static_cast<uint64_t>(Signed(bits, step.width)) : Cut(bits, step.width);
}

// The result of an arithmetic step, not yet cut to its width.
uint64_t Compute(const ReachStep& step, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
// Whether the comparison of a kSetp holds.
bool Holds(uint64_t a, uint64_t b, const ReachStep& step);

}  // namespace atp::ptx
