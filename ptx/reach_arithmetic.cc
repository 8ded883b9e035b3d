// SPDX-License-Identifier: Apache-2.0
#include "ptx/reach_arithmetic.h"

#include <algorithm>

namespace atp::ptx {
namespace {

uint64_t HighProduct(uint64_t a, uint64_t b, const ReachStep& step) {
  if (step.is_signed) {
    const __int128 product = static_cast<__int128>(Signed(a, step.width)) * Signed(b, step.width);
    return static_cast<uint64_t>(product >> (8 * step.width));
  }
  const auto product = static_cast<unsigned __int128>(Cut(a, step.width)) * Cut(b, step.width);
  return static_cast<uint64_t>(product >> (8 * step.width));
}

uint64_t Divide(uint64_t a, uint64_t b, const ReachStep& step) {
  const uint64_t by = Cut(b, step.width);
  if (by == 0) return ~uint64_t{0};  // what the device answers
  if (!step.is_signed) return Cut(a, step.width) / by;
  const int64_t x = Signed(a, step.width), y = Signed(b, step.width);
  return y == -1 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x / y);
}
uint64_t Remainder(uint64_t a, uint64_t b, const ReachStep& step) {
  const uint64_t by = Cut(b, step.width);
  if (by == 0) return a;
  if (!step.is_signed) return Cut(a, step.width) % by;
  const int64_t x = Signed(a, step.width), y = Signed(b, step.width);
  return y == -1 ? 0 : static_cast<uint64_t>(x % y);
}

bool Less(uint64_t a, uint64_t b, const ReachStep& step) {
  return step.is_signed ? Signed(a, step.width) < Signed(b, step.width)
                        : Cut(a, step.width) < Cut(b, step.width);
}
// Shift counts beyond the width give 0, or the sign.
uint64_t ShiftRight(uint64_t a, uint64_t count, const ReachStep& step) {
  const unsigned bits = 8u * step.width;
  if (step.is_signed) {
    return static_cast<uint64_t>(Signed(a, step.width) >> std::min<uint64_t>(count, 63));
  }
  return count >= bits ? 0 : Cut(a, step.width) >> count;
}

uint64_t Field(uint64_t a, uint64_t at, uint64_t length, const ReachStep& step) {
  const uint64_t bits = 8u * step.width;
  at = Cut(at, 1), length = std::min(Cut(length, 1), bits);
  if (length == 0) return 0;
  const uint64_t shifted = at >= bits ? (step.is_signed && Signed(a, step.width) < 0 ? ~0ull : 0)
                                      : Extended(a, step) >> at;
  if (length >= 64) return shifted;
  const uint64_t field = shifted & ((uint64_t{1} << length) - 1);
  const bool negative = step.is_signed && (field >> (length - 1) & 1) != 0;
  return negative ? field | ~uint64_t{0} << length : field;
}

// bfi: the lowest bits of `a`, so many as `length`, in `b` from bit `at` on.
uint64_t Inserted(uint64_t a, uint64_t b, uint64_t at, uint64_t length, const ReachStep& step) {
  const uint64_t bits = 8u * step.width;
  at = Cut(at, 1), length = Cut(length, 1);
  if (at >= bits || length == 0) return b;
  length = std::min(length, bits - at);
  const uint64_t mask = (length >= 64 ? ~uint64_t{0} : (uint64_t{1} << length) - 1) << at;
  return (b & ~mask) | (a << at & mask);
}

// lop3: bit 4 a + 2 b + c of the table.
uint64_t ByTable(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
  uint64_t result = 0;
  for (unsigned k = 0; k < 8; ++k) {
    if ((table >> k & 1) == 0) continue;
    result |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
  }
  return result;
}

}  // namespace

bool Holds(uint64_t a, uint64_t b, const ReachStep& step) {
  const bool equal = Cut(a, step.width) == Cut(b, step.width);
  switch (step.comparison) {
    case Comparison::kEq:
      return equal;
    case Comparison::kNe:
      return !equal;
    case Comparison::kLt:
      return Less(a, b, step);
    case Comparison::kLe:
      return equal || Less(a, b, step);
    case Comparison::kGt:
      return !equal && !Less(a, b, step);
    case Comparison::kGe:
      return !Less(a, b, step);
  }
  return false;
}

uint64_t Compute(const ReachStep& s, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  switch (s.op) {
    case ReachOp::kAdd:
      return a + b;
    case ReachOp::kSub:
      return a - b;
    case ReachOp::kMul:
      return a * b;
    case ReachOp::kMulHi:
      return HighProduct(a, b, s);
    case ReachOp::kMulWide:
      return Extended(a, s) * Extended(b, s);
    case ReachOp::kMad:
      return a * b + c;
    case ReachOp::kMadHi:
      return HighProduct(a, b, s) + c;
    case ReachOp::kMadWide:
      return Extended(a, s) * Extended(b, s) + c;
    case ReachOp::kDiv:
      return Divide(a, b, s);
    case ReachOp::kRem:
      return Remainder(a, b, s);
    case ReachOp::kMin:
      return Less(a, b, s) ? a : b;
    case ReachOp::kMax:
      return Less(a, b, s) ? b : a;
    case ReachOp::kAbs:
      return Signed(a, s.width) < 0 ? 0 - a : a;
    case ReachOp::kNeg:
      return 0 - a;
    case ReachOp::kAnd:
      return a & b;
    case ReachOp::kOr:
      return a | b;
    case ReachOp::kXor:
      return a ^ b;
    case ReachOp::kNot:
      return ~a;
    case ReachOp::kShl:
      return Cut(b, 4) >= 8u * s.width ? 0 : a << Cut(b, 4);
    case ReachOp::kShr:
      return ShiftRight(a, Cut(b, 4), s);
    case ReachOp::kBfe:
      return Field(a, b, c, s);
    case ReachOp::kBfi:
      return Inserted(a, b, c, d, s);
    case ReachOp::kLop3:
      return ByTable(a, b, c, d);
    case ReachOp::kPack:
      return Cut(a, s.width / 2u) | Cut(b, s.width / 2u) << (4u * s.width);
    default:
      return s.op == ReachOp::kCvt ? Extended(a, s) : a;
  }
}

}  // namespace atp::ptx
