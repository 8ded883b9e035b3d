// SPDX-License-Identifier: Apache-2.0
#include "ptx/thread_row.h"

#include <algorithm>

#include "ptx/reach_arithmetic.h"

namespace atp::ptx {
namespace {

using Wide = __int128;

// The values as numbers of `width` bytes.
struct Line {
  Wide first = 0, step = 0, last = 0;
};

// False: some thread's value wraps around.
bool LineOf(const RowValue& v, unsigned width, bool is_signed, uint64_t count, Line* line) {
  line->first = is_signed ? Wide{Signed(v.bits, width)} : Wide{Cut(v.bits, width)};
  line->step = Signed(static_cast<uint64_t>(v.step), width);
  line->last = line->first + line->step * static_cast<Wide>(count - 1);
  const unsigned bits = width == 0 ? 1 : 8 * std::min(width, 8u);
  const Wide end = Wide{1} << (is_signed ? bits - 1 : bits);
  return line->last < end && line->last >= (is_signed ? -end : Wide{0});
}

RowValue Linear(Wide first, Wide step) {
  return {static_cast<uint64_t>(first), static_cast<int64_t>(step), RowValue::kNumber,
          RowValue::State::kKnown};
}

// Sums and products modulo 2^64, of which the lowest bits are those of any width.
RowValue Sum(const RowValue& a, const RowValue& b) {
  RowValue sum = a;
  sum.bits += b.bits;
  sum.step = static_cast<int64_t>(static_cast<uint64_t>(a.step) + static_cast<uint64_t>(b.step));
  sum.origin = a.number() ? b.origin : a.origin;
  return sum;
}
RowValue Times(const RowValue& a, uint64_t factor) {
  RowValue product = a;
  product.bits *= factor;
  product.step = static_cast<int64_t>(static_cast<uint64_t>(a.step) * factor);
  return product;
}

class Row {
 public:
  Row(const ReachStep& step, const RowValue from[4], uint64_t count)
      : s_(step), a_(from[0]), b_(from[1]), c_(from[2]), count_(count) {}

  // Of numbers that are known and differ from thread to thread. False: to be split.
  bool Numbers(RowValue* to) const {
    switch (s_.op) {
      case ReachOp::kMov:
        return *to = a_, true;
      case ReachOp::kAdd:
        return *to = Sum(a_, b_), true;
      case ReachOp::kSub:
        return *to = Sum(a_, Times(b_, ~uint64_t{0})), true;
      case ReachOp::kNeg:
        return *to = Times(a_, ~uint64_t{0}), true;
      case ReachOp::kMul:
        return Product(a_, b_, to);
      case ReachOp::kMad:
        if (!Product(a_, b_, to)) return false;
        return *to = Sum(*to, c_), true;
      case ReachOp::kMulWide:
        return WideProduct(to);
      case ReachOp::kMadWide:
        if (!WideProduct(to)) return false;
        return *to = Sum(*to, c_), true;
      case ReachOp::kShl:
        return Shift(to);
      case ReachOp::kCvt:
        return Convert(to);
      case ReachOp::kDiv:
      case ReachOp::kRem:
        return b_.same() &&
               Divide(s_.is_signed ? Wide{Signed(b_.bits, s_.width)} : Wide{Cut(b_.bits, s_.width)},
                      s_.is_signed, a_, to);
      case ReachOp::kShr: {
        const uint64_t places = Cut(b_.bits, 4);
        return b_.same() && places < 8u * s_.width &&
               Divide(Wide{1} << places, s_.is_signed, a_, to);
      }
      case ReachOp::kAnd:
        return a_.same() ? Mask(b_, a_, to) : b_.same() && Mask(a_, b_, to);
      case ReachOp::kOr:
      case ReachOp::kXor:
        return a_.same() ? Join(b_, a_, to) : b_.same() && Join(a_, b_, to);
      case ReachOp::kMin:
      case ReachOp::kMax:
        return Choose(to);
      default:
        return false;
    }
  }

  // Whether all threads find the comparison to hold, or all not.
  bool Compare(bool* holds) const {
    Line a, b;
    if (!LineOf(a_, s_.width, s_.is_signed, count_, &a) ||
        !LineOf(b_, s_.width, s_.is_signed, count_, &b)) {
      return false;
    }
    const Wide first = a.first - b.first, last = a.last - b.last;
    if (s_.comparison == Comparison::kEq || s_.comparison == Comparison::kNe) {
      const bool apart = (first < 0 && last < 0) || (first > 0 && last > 0);
      if (!apart && a.step != b.step) return false;
      return *holds = (first == 0) == (s_.comparison == Comparison::kEq), true;
    }
    // The difference goes in one direction: what both ends find, all between them do.
    *holds = Ordered(first);
    return Ordered(last) == *holds;
  }

 private:
  bool Ordered(Wide difference) const {
    switch (s_.comparison) {
      case Comparison::kLt:
        return difference < 0;
      case Comparison::kLe:
        return difference <= 0;
      case Comparison::kGt:
        return difference > 0;
      default:
        return difference >= 0;
    }
  }

  static bool Product(const RowValue& a, const RowValue& b, RowValue* to) {
    if (!a.same() && !b.same()) return false;
    return *to = a.same() ? Times(b, a.bits) : Times(a, b.bits), true;
  }

  bool WideProduct(RowValue* to) const {
    Line a, b;
    if ((!a_.same() && !b_.same()) || !LineOf(a_, s_.width, s_.is_signed, count_, &a) ||
        !LineOf(b_, s_.width, s_.is_signed, count_, &b)) {
      return false;
    }
    *to = Linear(a.first * b.first, a.step * b.first + b.step * a.first);
    return true;
  }

  bool Shift(RowValue* to) const {
    if (!b_.same()) return false;
    const uint64_t places = Cut(b_.bits, 4);
    *to = places >= 8u * s_.width ? RowValue{} : Times(a_, uint64_t{1} << places);
    return true;
  }

  bool Convert(RowValue* to) const {
    Line a;
    if (s_.to_width <= s_.width) return *to = a_, true;
    if (!LineOf(a_, s_.width, s_.is_signed, count_, &a)) return false;
    return *to = Linear(a.first, a.step), true;
  }

  // Quotient (kDiv, kShr) or remainder of what is not negative.
  bool Divide(Wide by, bool is_signed, const RowValue& value, RowValue* to) const {
    Line line;
    if (by <= 0 || !LineOf(value, s_.width, is_signed, count_, &line) || line.first < 0 ||
        line.last < 0) {
      return false;
    }
    const bool quotient = s_.op == ReachOp::kDiv || s_.op == ReachOp::kShr;
    if (line.step % by == 0) {
      *to = quotient ? Linear(line.first / by, line.step / by) : Linear(line.first % by, 0);
      return true;
    }
    if (line.first / by != line.last / by) return false;
    *to = quotient ? Linear(line.first / by, 0) : Linear(line.first % by, line.step);
    return true;
  }

  // With the lowest bits set: a remainder.
  bool Mask(const RowValue& value, const RowValue& mask, RowValue* to) const {
    const Wide by = Wide{Cut(mask.bits, s_.width)} + 1;
    return s_.width > 0 && (by & (by - 1)) == 0 && Divide(by, false, value, to);
  }

  // With bits that no thread's value has: a sum.
  bool Join(const RowValue& value, const RowValue& bits, RowValue* to) const {
    Line line;
    if (!LineOf(value, s_.width, false, count_, &line)) return false;
    Wide above = 1;
    while (above <= std::max(line.first, line.last)) above <<= 1;
    if ((Wide{Cut(bits.bits, s_.width)} & (above - 1)) != 0) return false;
    return *to = Sum(value, bits), true;
  }

  bool Choose(RowValue* to) const {
    Line a, b;
    if (!LineOf(a_, s_.width, s_.is_signed, count_, &a) ||
        !LineOf(b_, s_.width, s_.is_signed, count_, &b)) {
      return false;
    }
    const bool below = a.first <= b.first && a.last <= b.last;
    const bool above = a.first >= b.first && a.last >= b.last;
    if (!below && !above) return false;
    return *to = below == (s_.op == ReachOp::kMin) ? a_ : b_, true;
  }

  const ReachStep& s_;
  const RowValue &a_, &b_, &c_;
  const uint64_t count_;
};

// Adding to a pointer, or taking the difference of what counts from one pointer, is all that is
// followed; anything else made of its value is not known.
RowValue OfPointers(const ReachStep& s, const RowValue& a, const RowValue& b, const RowValue& c,
                    uint64_t count, bool* split) {
  const RowValue minus = Times(b, ~uint64_t{0});
  if (s.to_width != 8) return RowValue::Unknown();
  switch (s.op) {
    case ReachOp::kMov:
      return a;
    case ReachOp::kAdd:
      return a.number() || b.number() ? Sum(a, b) : RowValue::Unknown();
    case ReachOp::kSub: {
      RowValue difference = Sum(a, minus);
      difference.origin = b.number() ? a.origin : RowValue::kNumber;
      return b.number() || a.origin == b.origin ? difference : RowValue::Unknown();
    }
    case ReachOp::kMad:
    case ReachOp::kMadWide: {
      if (!a.number() || !b.number()) return RowValue::Unknown();
      const RowValue factors[4] = {a, b, {}, {}};
      ReachStep product = s;
      product.op = s.op == ReachOp::kMad ? ReachOp::kMul : ReachOp::kMulWide;
      RowValue to[2];
      *split = !ComputeRow(product, factors, count, to);
      return Sum(to[0], c);
    }
    default:
      return RowValue::Unknown();
  }
}

RowValue Predicate(bool value) { return {value, 0, RowValue::kNumber, RowValue::State::kKnown}; }

bool CompareRow(const ReachStep& s, const RowValue from[4], uint64_t count, RowValue to[2]) {
  const RowValue &a = from[0], &b = from[1], &c = from[2];
  bool known = a.known() && b.known(), holds = false;
  if (known && a.number() && b.number()) {
    if (!Row(s, from, count).Compare(&holds)) return false;
  } else if (known) {
    // A pointer is not null.
    const RowValue &pointer = a.number() ? b : a, &zero = a.number() ? a : b;
    known = zero.number() && pointer.origin != RowValue::kParameterBuffer && zero.same() &&
            pointer.same() && s.width == 8 && zero.bits == 0 && pointer.bits == 0 &&
            (s.comparison == Comparison::kEq || s.comparison == Comparison::kNe);
    holds = s.comparison == Comparison::kNe;
  }
  for (unsigned k = 0; k < 2; ++k) {
    const bool x = k == 0 ? holds : !holds, other = c.bits != 0;
    switch (s.combination) {
      case Combination::kNone:
        to[k] = known ? Predicate(x) : RowValue::Unknown();
        break;
      case Combination::kAnd:
        to[k] = (known && !x) || (c.known() && !other) ? Predicate(false)
                : known && c.known()                   ? Predicate(true)
                                                       : RowValue::Unknown();
        break;
      case Combination::kOr:
        to[k] = (known && x) || (c.known() && other) ? Predicate(true)
                : known && c.known()                 ? Predicate(false)
                                                     : RowValue::Unknown();
        break;
      case Combination::kXor:
        to[k] = known && c.known() ? Predicate(x != other) : RowValue::Unknown();
        break;
    }
  }
  return true;
}

// Of two predicates one can decide alone.
bool Decides(const ReachStep& s, const RowValue& v) {
  if (s.width != 0 || !v.known()) return false;
  return (s.op == ReachOp::kAnd && v.bits == 0) || (s.op == ReachOp::kOr && v.bits != 0);
}

bool Calculate(const ReachStep& s, const RowValue from[4], uint64_t count, RowValue* to) {
  bool known = true, same = true, numbers = true, split = false;
  for (unsigned k = 0; k < 4; ++k) {
    known &= from[k].known();
    same &= from[k].same();
    numbers &= from[k].number();
  }
  if (!known) {
    *to = Decides(s, from[0]) ? from[0] : Decides(s, from[1]) ? from[1] : RowValue::Unknown();
  } else if (!numbers) {
    *to = OfPointers(s, from[0], from[1], from[2], count, &split);
  } else if (same) {
    *to = RowValue{};
    to->bits = Compute(s, from[0].bits, from[1].bits, from[2].bits, from[3].bits);
  } else {
    split = !Row(s, from, count).Numbers(to);
  }
  if (to->number()) to->bits = Cut(to->bits, s.to_width);
  return !split;
}

}  // namespace

bool ComputeRow(const ReachStep& s, const RowValue from[4], uint64_t count, RowValue to[2]) {
  for (unsigned k = 0; k < 4; ++k) {
    if (from[k].state == RowValue::State::kRagged) return false;
  }
  switch (s.op) {
    case ReachOp::kUnknown:
    case ReachOp::kOwnAddress:
      to[0] = RowValue::Unknown();
      return true;
    case ReachOp::kSetp:
      return CompareRow(s, from, count, to);
    case ReachOp::kSelp:
      to[0] = !from[2].known() ? RowValue::Unknown() : from[2].bits != 0 ? from[0] : from[1];
      return true;
    case ReachOp::kUnpack: {
      const unsigned half = s.width / 2u;
      if (!from[0].same()) return false;
      for (unsigned k = 0; k < 2; ++k) {
        to[k] = from[0].known() && from[0].number()
                    ? RowValue{Cut(from[0].bits >> (8 * half * k), half)}
                    : RowValue::Unknown();
      }
      return true;
    }
    default:
      return Calculate(s, from, count, &to[0]);
  }
}

}  // namespace atp::ptx
