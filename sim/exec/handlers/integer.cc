// SPDX-License-Identifier: Apache-2.0
// Integer arithmetic. Division by zero gives all ones and remainder by zero the dividend, as NVIDIA
// devices do.
#include "sim/exec/handlers/lanes.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

template <class T>
using Unsigned = std::make_unsigned_t<T>;
template <class T>
struct Twice;
template <>
struct Twice<uint16_t> {
  using type = uint32_t;
};
template <>
struct Twice<int16_t> {
  using type = int32_t;
};
template <>
struct Twice<uint32_t> {
  using type = uint64_t;
};
template <>
struct Twice<int32_t> {
  using type = int64_t;
};
template <>
struct Twice<uint64_t> {
  using type = unsigned __int128;
};
template <>
struct Twice<int64_t> {
  using type = __int128;
};

template <class T>
ATP_INLINE T Wrap(uint64_t v) {
  return static_cast<T>(v);
}

struct Add {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return Wrap<T>(uint64_t(a) + uint64_t(b));
  }
};
struct Sub {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return Wrap<T>(uint64_t(a) - uint64_t(b));
  }
};
struct MulLo {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return Wrap<T>(uint64_t(Unsigned<T>(a)) * Unsigned<T>(b));
  }
};
struct MulHi {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    using W = typename Twice<T>::type;
    return static_cast<T>((static_cast<W>(a) * static_cast<W>(b)) >> (8 * sizeof(T)));
  }
};
struct MulWide {
  template <class T>
  static ATP_INLINE auto Do(T a, T b) {
    using W = typename Twice<T>::type;
    return static_cast<W>(static_cast<std::make_unsigned_t<W>>(static_cast<W>(a)) *
                          static_cast<std::make_unsigned_t<W>>(static_cast<W>(b)));
  }
};
struct MadLo {
  template <class T>
  static ATP_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(MulLo::Do<T>(a, b), c);
  }
};
struct MadHi {
  template <class T>
  static ATP_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(MulHi::Do<T>(a, b), c);
  }
};
struct MadWide {
  template <class T, class W>
  static ATP_INLINE W Do(T a, T b, W c) {
    return Add::Do<W>(MulWide::Do<T>(a, b), c);
  }
};
struct Mul24Lo {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    int64_t x = std::is_signed_v<T> ? int64_t(int32_t(uint32_t(a) << 8) >> 8)
                                    : int64_t(uint32_t(a) & 0xffffff);
    int64_t y = std::is_signed_v<T> ? int64_t(int32_t(uint32_t(b) << 8) >> 8)
                                    : int64_t(uint32_t(b) & 0xffffff);
    return static_cast<T>(x * y);
  }
};
struct Mad24Lo {
  template <class T>
  static ATP_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(Mul24Lo::Do<T>(a, b), c);
  }
};
struct Div {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    if (b == 0) return static_cast<T>(-1);
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Wrap<T>(0 - uint64_t(a));
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
struct Min {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a > b ? a : b;
  }
};
struct MinRelu {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    T m = a < b ? a : b;
    return m > 0 ? m : T(0);
  }
};
struct MaxRelu {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    T m = a > b ? a : b;
    return m > 0 ? m : T(0);
  }
};
struct Neg {
  template <class T>
  static ATP_INLINE T Do(T a) {
    return Wrap<T>(0 - uint64_t(a));
  }
};
struct Abs {
  template <class T>
  static ATP_INLINE T Do(T a) {
    return a < 0 ? Wrap<T>(0 - uint64_t(a)) : a;
  }
};
struct Sad {
  template <class T>
  static ATP_INLINE T Do(T a, T b, T c) {
    return Add::Do<T>(c, a > b ? Sub::Do<T>(a, b) : Sub::Do<T>(b, a));
  }
};
struct AddSat {
  static ATP_INLINE int32_t Do(int32_t a, int32_t b) {
    int64_t s = int64_t(a) + b;
    return int32_t(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
  }
};
struct SubSat {
  static ATP_INLINE int32_t Do(int32_t a, int32_t b) {
    int64_t s = int64_t(a) - b;
    return int32_t(s > INT32_MAX ? INT32_MAX : s < INT32_MIN ? INT32_MIN : s);
  }
};
struct MadHiSat {
  static ATP_INLINE int32_t Do(int32_t a, int32_t b, int32_t c) {
    return AddSat::Do(MulHi::Do<int32_t>(a, b), c);
  }
};

// Two 16-bit values side by side.
template <class F, class H>
struct Pairwise {
  static ATP_INLINE uint32_t Do(uint32_t a, uint32_t b) {
    uint32_t low = static_cast<uint16_t>(F::template Do<H>(static_cast<H>(a), static_cast<H>(b)));
    uint32_t high =
        static_cast<uint16_t>(F::template Do<H>(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
    return low | high << 16;
  }
};

// dp4a, dp2a: signedness of a and b by type, the high half of dp2a by a flag.
template <class A, class B>
struct Dp4a {
  template <class T>
  static ATP_INLINE T Do(uint32_t a, uint32_t b, T c) {
    uint32_t sum = static_cast<uint32_t>(c);
    for (int k = 0; k < 4; ++k) {
      sum += static_cast<uint32_t>(int32_t{static_cast<A>(a >> (8 * k))} *
                                   int32_t{static_cast<B>(b >> (8 * k))});
    }
    return static_cast<T>(sum);
  }
};
template <class A, class A16, class B, int kShift>
struct Dp2a {
  template <class T>
  static ATP_INLINE T Do(uint32_t a, uint32_t b, T c) {
    uint32_t sum = static_cast<uint32_t>(c);
    for (int k = 0; k < 2; ++k) {
      sum += static_cast<uint32_t>(int32_t{static_cast<A16>(a >> (16 * k))} *
                                   int32_t{static_cast<B>(b >> (kShift + 8 * k))});
    }
    return static_cast<T>(sum);
  }
};

// Carry chains: Warp::carry has one bit a lane. aux bit 0: take the carry in; bit 1: write the
// carry out.
template <class T, bool kSubtract>
const Insn* CarryAdd(Warp& w, const Insn* i) {
  using U = Unsigned<T>;
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]);
  uint32_t out = 0;
  ATP_ACTIVE(l, w.mask) {
    U x = static_cast<U>(Get<T>(a, int(l))), y = static_cast<U>(Get<T>(b, int(l)));
    U carry = (i->aux & 1) ? static_cast<U>(w.carry >> l & 1) : U{0};
    U sum, first;
    bool over;
    if (kSubtract) {
      over = __builtin_sub_overflow(x, y, &first);
      over |= __builtin_sub_overflow(first, carry, &sum);
    } else {
      over = __builtin_add_overflow(x, y, &first);
      over |= __builtin_add_overflow(first, carry, &sum);
    }
    out |= uint32_t{over} << l;
    Put<U>(At(w, i->r[0]), int(l), sum);
  }
  if (i->aux & 2) w.carry = (w.carry & ~w.mask) | out;
  return i + 1;
}
template <class T, bool kHigh>
const Insn* CarryMad(Warp& w, const Insn* i) {
  using U = Unsigned<T>;
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]);
  uint32_t out = 0;
  ATP_ACTIVE(l, w.mask) {
    T x = Get<T>(a, int(l)), y = Get<T>(b, int(l));
    U product = static_cast<U>(kHigh ? MulHi::Do<T>(x, y) : MulLo::Do<T>(x, y));
    U carry = (i->aux & 1) ? static_cast<U>(w.carry >> l & 1) : U{0};
    U first, sum;
    bool over = __builtin_add_overflow(product, static_cast<U>(Get<T>(c, int(l))), &first);
    over |= __builtin_add_overflow(first, carry, &sum);
    out |= uint32_t{over} << l;
    Put<U>(At(w, i->r[0]), int(l), sum);
  }
  if (i->aux & 2) w.carry = (w.carry & ~w.mask) | out;
  return i + 1;
}

template <class F>
Handler Same2(Type type) {
  switch (type) {
    case Type::kU16:
    case Type::kB16:
      return Op2<F, uint16_t, uint16_t, uint16_t>;
    case Type::kS16:
      return Op2<F, int16_t, int16_t, int16_t>;
    case Type::kU32:
    case Type::kB32:
      return Op2<F, uint32_t, uint32_t, uint32_t>;
    case Type::kS32:
      return Op2<F, int32_t, int32_t, int32_t>;
    case Type::kU64:
    case Type::kB64:
      return Op2<F, uint64_t, uint64_t, uint64_t>;
    case Type::kS64:
      return Op2<F, int64_t, int64_t, int64_t>;
    default:
      return nullptr;
  }
}
template <class F>
Handler Same3(Type type) {
  switch (type) {
    case Type::kU16:
      return Op3<F, uint16_t, uint16_t, uint16_t, uint16_t>;
    case Type::kS16:
      return Op3<F, int16_t, int16_t, int16_t, int16_t>;
    case Type::kU32:
      return Op3<F, uint32_t, uint32_t, uint32_t, uint32_t>;
    case Type::kS32:
      return Op3<F, int32_t, int32_t, int32_t, int32_t>;
    case Type::kU64:
      return Op3<F, uint64_t, uint64_t, uint64_t, uint64_t>;
    case Type::kS64:
      return Op3<F, int64_t, int64_t, int64_t, int64_t>;
    default:
      return nullptr;
  }
}

template <class F>
Handler Pairs(Type type) {
  if (type == Type::kU16x2) return Op2<Pairwise<F, uint16_t>, uint32_t, uint32_t, uint32_t>;
  if (type == Type::kS16x2) return Op2<Pairwise<F, int16_t>, uint32_t, uint32_t, uint32_t>;
  return nullptr;
}

template <bool kSubtract>
Handler PickCarry(Type type) {
  switch (type) {
    case Type::kU32:
    case Type::kB32:
    case Type::kS32:
      return CarryAdd<uint32_t, kSubtract>;
    case Type::kU64:
    case Type::kB64:
    case Type::kS64:
      return CarryAdd<uint64_t, kSubtract>;
    default:
      return nullptr;
  }
}

Handler PickCarryMad(const ptx::Op& op) {
  bool high = op.Has(Mod::kHi);
  switch (op.type()) {
    case Type::kU32:
      return high ? CarryMad<uint32_t, true> : CarryMad<uint32_t, false>;
    case Type::kS32:
      return high ? CarryMad<int32_t, true> : CarryMad<int32_t, false>;
    case Type::kU64:
      return high ? CarryMad<uint64_t, true> : CarryMad<uint64_t, false>;
    case Type::kS64:
      return high ? CarryMad<int64_t, true> : CarryMad<int64_t, false>;
    default:
      return nullptr;
  }
}

Handler PickWide(const ptx::Op& op, bool add) {
  switch (op.type()) {
    case Type::kU16:
      return add ? Op3<MadWide, uint32_t, uint16_t, uint16_t, uint32_t>
                 : Op2<MulWide, uint32_t, uint16_t, uint16_t>;
    case Type::kS16:
      return add ? Op3<MadWide, int32_t, int16_t, int16_t, int32_t>
                 : Op2<MulWide, int32_t, int16_t, int16_t>;
    case Type::kU32:
      return add ? Op3<MadWide, uint64_t, uint32_t, uint32_t, uint64_t>
                 : Op2<MulWide, uint64_t, uint32_t, uint32_t>;
    case Type::kS32:
      return add ? Op3<MadWide, int64_t, int32_t, int32_t, int64_t>
                 : Op2<MulWide, int64_t, int32_t, int32_t>;
    default:
      return nullptr;
  }
}

Handler PickDot(const ptx::Op& op) {
  if (op.type_count != 2) return nullptr;
  bool sa = ptx::IsSigned(op.types[0]), sb = ptx::IsSigned(op.types[1]);
  auto pick = [&](Handler ss, Handler su, Handler us, Handler uu) {
    return sa ? (sb ? ss : su) : (sb ? us : uu);
  };
  if (op.base == Base::kDp4a) {
    return pick(Op3<Dp4a<int8_t, int8_t>, int32_t, uint32_t, uint32_t, int32_t>,
                Op3<Dp4a<int8_t, uint8_t>, int32_t, uint32_t, uint32_t, int32_t>,
                Op3<Dp4a<uint8_t, int8_t>, int32_t, uint32_t, uint32_t, int32_t>,
                Op3<Dp4a<uint8_t, uint8_t>, int32_t, uint32_t, uint32_t, int32_t>);
  }
  if (op.Has(Mod::kHi)) {
    return pick(Op3<Dp2a<int8_t, int16_t, int8_t, 16>, int32_t, uint32_t, uint32_t, int32_t>,
                Op3<Dp2a<int8_t, int16_t, uint8_t, 16>, int32_t, uint32_t, uint32_t, int32_t>,
                Op3<Dp2a<uint8_t, uint16_t, int8_t, 16>, int32_t, uint32_t, uint32_t, int32_t>,
                Op3<Dp2a<uint8_t, uint16_t, uint8_t, 16>, int32_t, uint32_t, uint32_t, int32_t>);
  }
  return pick(Op3<Dp2a<int8_t, int16_t, int8_t, 0>, int32_t, uint32_t, uint32_t, int32_t>,
              Op3<Dp2a<int8_t, int16_t, uint8_t, 0>, int32_t, uint32_t, uint32_t, int32_t>,
              Op3<Dp2a<uint8_t, uint16_t, int8_t, 0>, int32_t, uint32_t, uint32_t, int32_t>,
              Op3<Dp2a<uint8_t, uint16_t, uint8_t, 0>, int32_t, uint32_t, uint32_t, int32_t>);
}

Handler PickMultiply(const ptx::Op& op) {
  bool add = op.base == Base::kMad;
  if (op.Has(Mod::kWide)) return PickWide(op, add);
  if (op.Has(Mod::kCc)) return add ? PickCarryMad(op) : nullptr;
  if (op.Has(Mod::kSat)) {
    bool ok = add && op.Has(Mod::kHi) && op.type() == Type::kS32;
    return ok ? Op3<MadHiSat, int32_t, int32_t, int32_t, int32_t> : nullptr;
  }
  if (op.Has(Mod::kHi)) return add ? Same3<MadHi>(op.type()) : Same2<MulHi>(op.type());
  if (op.Has(Mod::kLo)) return add ? Same3<MadLo>(op.type()) : Same2<MulLo>(op.type());
  return nullptr;
}

Handler PickMinMax(const ptx::Op& op) {
  bool min = op.base == Base::kMin;
  if (op.Has(Mod::kRelu)) {
    if (op.type() == Type::kS32)
      return min ? Op2<MinRelu, int32_t, int32_t, int32_t>
                 : Op2<MaxRelu, int32_t, int32_t, int32_t>;
    if (op.type() != Type::kS16x2) return nullptr;
    return min ? Pairs<MinRelu>(Type::kS16x2) : Pairs<MaxRelu>(Type::kS16x2);
  }
  if (Handler pair = min ? Pairs<Min>(op.type()) : Pairs<Max>(op.type())) return pair;
  return min ? Same2<Min>(op.type()) : Same2<Max>(op.type());
}

Handler PickSigned1(const ptx::Op& op) {
  bool neg = op.base == Base::kNeg;
  switch (op.type()) {
    case Type::kS16:
      return neg ? Op1<Neg, int16_t, int16_t> : Op1<Abs, int16_t, int16_t>;
    case Type::kS32:
      return neg ? Op1<Neg, int32_t, int32_t> : Op1<Abs, int32_t, int32_t>;
    case Type::kS64:
      return neg ? Op1<Neg, int64_t, int64_t> : Op1<Abs, int64_t, int64_t>;
    default:
      return nullptr;
  }
}

Handler PickAddSub(const ptx::Op& op) {
  bool add = op.base == Base::kAdd;
  if (op.Has(Mod::kCc)) return add ? PickCarry<false>(op.type()) : PickCarry<true>(op.type());
  if (op.Has(Mod::kSat)) {
    if (op.type() != Type::kS32) return nullptr;
    return add ? Op2<AddSat, int32_t, int32_t, int32_t> : Op2<SubSat, int32_t, int32_t, int32_t>;
  }
  if (add) {
    if (Handler pair = Pairs<Add>(op.type())) return pair;
  }
  return add ? Same2<Add>(op.type()) : Same2<Sub>(op.type());
}

}  // namespace

Handler PickInteger(const ptx::Op& op) {
  Type type = op.type();
  if (ptx::IsFloat(type)) return nullptr;
  bool is_signed = type == Type::kS32;
  switch (op.base) {
    case Base::kAdd:
    case Base::kSub:
      return PickAddSub(op);
    case Base::kAddc:
      return PickCarry<false>(type);
    case Base::kSubc:
      return PickCarry<true>(type);
    case Base::kMul:
    case Base::kMad:
      return PickMultiply(op);
    case Base::kMadc:
      return PickCarryMad(op);
    case Base::kMul24:
      if (op.Has(Mod::kHi) || (type != Type::kS32 && type != Type::kU32)) return nullptr;
      return is_signed ? Op2<Mul24Lo, int32_t, int32_t, int32_t>
                       : Op2<Mul24Lo, uint32_t, uint32_t, uint32_t>;
    case Base::kMad24:
      if (op.Has(Mod::kHi) || (type != Type::kS32 && type != Type::kU32)) return nullptr;
      return is_signed ? Op3<Mad24Lo, int32_t, int32_t, int32_t, int32_t>
                       : Op3<Mad24Lo, uint32_t, uint32_t, uint32_t, uint32_t>;
    case Base::kDiv:
      return Same2<Div>(type);
    case Base::kRem:
      return Same2<Rem>(type);
    case Base::kMin:
    case Base::kMax:
      return PickMinMax(op);
    case Base::kNeg:
    case Base::kAbs:
      return PickSigned1(op);
    case Base::kSad:
      return Same3<Sad>(type);
    case Base::kDp4a:
    case Base::kDp2a:
      return PickDot(op);
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
