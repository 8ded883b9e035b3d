// SPDX-License-Identifier: Apache-2.0
// setp, set and testp. Insn::aux holds how the result is combined with a predicate: 0 = not, 1 =
// and, 2 = or, 3 = xor.
#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {

uint32_t MoveMask(const int32_t* lanes) {
  uint32_t bits = 0;
#if defined(__AVX512DQ__)
  bits = _mm512_movepi32_mask(_mm512_loadu_si512(lanes)) |
         static_cast<uint32_t>(_mm512_movepi32_mask(_mm512_loadu_si512(lanes + 16))) << 16;
#elif defined(__AVX2__)
  for (int k = 0; k < 4; ++k) {
    __m256 v =
        _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(lanes + 8 * k)));
    bits |= static_cast<uint32_t>(_mm256_movemask_ps(v)) << (8 * k);
  }
#else
  for (int k = 0; k < 8; ++k) {
    __m128 v = _mm_castsi128_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(lanes + 4 * k)));
    bits |= static_cast<uint32_t>(_mm_movemask_ps(v)) << (4 * k);
  }
#endif
  return bits;
}

namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

struct Eq {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a == b;
  }
};
struct Ne {  // ordered for floats
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a < b || a > b;
    return a != b;
  }
};
struct Lt {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a >= b;
  }
};
struct Equ {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return !(a < b || a > b);
  }
};
struct Neu {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a != b;
  }
};
struct Ltu {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return !(a >= b);
  }
};
struct Leu {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return !(a > b);
  }
};
struct Gtu {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return !(a <= b);
  }
};
struct Geu {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return !(a < b);
  }
};
struct Num {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a == a && b == b;
  }
};
struct Nan {
  template <class T>
  static ATP_INLINE bool Do(T a, T b) {
    return a != a || b != b;
  }
};

// How operands are read: H16 and B16 stand for half formats.
struct H16 {};
struct B16 {};
template <class T, bool kFtz>
struct Reader {
  using Value = T;
  static ATP_INLINE T Read(const uint8_t* p, int l) {
    if constexpr (std::is_same_v<T, float>)
      return Flush<kFtz>(Get<float>(p, l));
    else
      return Get<T>(p, l);
  }
};
template <bool kFtz>
struct Reader<H16, kFtz> {
  using Value = float;
  static ATP_INLINE float Read(const uint8_t* p, int l) {
    return HalfToFloat(Get<uint32_t>(p, l) & 0xffff);
  }
};
template <bool kFtz>
struct Reader<B16, kFtz> {
  using Value = float;
  static ATP_INLINE float Read(const uint8_t* p, int l) {
    return Bf16ToFloat(Get<uint32_t>(p, l) & 0xffff);
  }
};

template <class F, class T, bool kFtz>
ATP_INLINE uint32_t CompareLanes(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[2]), *b = At(w, i->r[3]);
  using R = Reader<T, kFtz>;
  alignas(64) int32_t result[kLanes];
  ATP_LANES(l) result[l] = F::template Do<typename R::Value>(R::Read(a, l), R::Read(b, l)) ? -1 : 0;
  return MoveMask(result);
}

uint32_t Combine(Warp& w, const Insn* i, uint32_t bits) {
  switch (i->aux) {
    case 1:
      return bits & Pred(w, i->r[4]);
    case 2:
      return bits | Pred(w, i->r[4]);
    case 3:
      return bits ^ Pred(w, i->r[4]);
    default:
      return bits;
  }
}

// r: p, q (or the sink), a, b, c
template <class F, class T, bool kFtz>
const Insn* Setp(Warp& w, const Insn* i) {
  uint32_t bits = CompareLanes<F, T, kFtz>(w, i);
  uint32_t p = Combine(w, i, bits), q = Combine(w, i, ~bits);
  SetPred(w, i->r[0], p, w.mask);
  SetPred(w, i->r[1], q, w.mask);
  return i + 1;
}
// r: d, unused, a, b, c; aux2 = the bits that stand for true
template <class F, class T, bool kFtz>
const Insn* Set(Warp& w, const Insn* i) {
  uint32_t bits = Combine(w, i, CompareLanes<F, T, kFtz>(w, i)), truth = i->aux2;
  return Each<uint32_t>(w, i, [=](int l) { return (bits & kBits.narrow[l]) != 0 ? truth : 0; });
}

// Two halves: setp.f16x2 gives p and q, set.f16x2 a packed result.
template <class F, class T>
ATP_INLINE void ComparePair(Warp& w, const Insn* i, uint32_t* low, uint32_t* high) {
  const uint8_t *a = At(w, i->r[2]), *b = At(w, i->r[3]);
  *low = *high = 0;
  for (int l = 0; l < kLanes; ++l) {
    uint32_t x = Get<uint32_t>(a, l), y = Get<uint32_t>(b, l);
    auto read = [](uint32_t h) {
      return std::is_same_v<T, H16> ? HalfToFloat(h & 0xffff) : Bf16ToFloat(h & 0xffff);
    };
    *low |= uint32_t{F::template Do<float>(read(x), read(y))} << l;
    *high |= uint32_t{F::template Do<float>(read(x >> 16), read(y >> 16))} << l;
  }
}
template <class F, class T>
const Insn* SetpPair(Warp& w, const Insn* i) {
  uint32_t low, high;
  ComparePair<F, T>(w, i, &low, &high);
  uint32_t p = Combine(w, i, low), q = Combine(w, i, high);
  SetPred(w, i->r[0], p, w.mask);
  SetPred(w, i->r[1], q, w.mask);
  return i + 1;
}
template <class F, class T>
const Insn* SetPair(Warp& w, const Insn* i) {
  uint32_t low, high, truth = i->aux2 & 0xffff;
  ComparePair<F, T>(w, i, &low, &high);
  low = Combine(w, i, low), high = Combine(w, i, high);
  return Each<uint32_t>(
      w, i, [=](int l) { return (low >> l & 1 ? truth : 0) | (high >> l & 1 ? truth << 16 : 0); });
}

struct Choice {
  Handler setp, set;
};

template <class T, bool kFtz, class F>
Choice Both() {
  return {Setp<F, T, kFtz>, Set<F, T, kFtz>};
}
template <class T, class F>
Choice BothPair() {
  return {SetpPair<F, T>, SetPair<F, T>};
}

template <class T, bool kFtz>
Choice FloatChoice(const ptx::Op& op) {
  if (op.Has(Mod::kEq)) return Both<T, kFtz, Eq>();
  if (op.Has(Mod::kNe)) return Both<T, kFtz, Ne>();
  if (op.Has(Mod::kLt)) return Both<T, kFtz, Lt>();
  if (op.Has(Mod::kLe)) return Both<T, kFtz, Le>();
  if (op.Has(Mod::kGt)) return Both<T, kFtz, Gt>();
  if (op.Has(Mod::kGe)) return Both<T, kFtz, Ge>();
  if (op.Has(Mod::kEqu)) return Both<T, kFtz, Equ>();
  if (op.Has(Mod::kNeu)) return Both<T, kFtz, Neu>();
  if (op.Has(Mod::kLtu)) return Both<T, kFtz, Ltu>();
  if (op.Has(Mod::kLeu)) return Both<T, kFtz, Leu>();
  if (op.Has(Mod::kGtu)) return Both<T, kFtz, Gtu>();
  if (op.Has(Mod::kGeu)) return Both<T, kFtz, Geu>();
  if (op.Has(Mod::kNum)) return Both<T, kFtz, Num>();
  if (op.Has(Mod::kNan)) return Both<T, kFtz, Nan>();
  return {};
}
template <class T>
Choice PairChoice(const ptx::Op& op) {
  if (op.Has(Mod::kEq)) return BothPair<T, Eq>();
  if (op.Has(Mod::kNe)) return BothPair<T, Ne>();
  if (op.Has(Mod::kLt)) return BothPair<T, Lt>();
  if (op.Has(Mod::kLe)) return BothPair<T, Le>();
  if (op.Has(Mod::kGt)) return BothPair<T, Gt>();
  if (op.Has(Mod::kGe)) return BothPair<T, Ge>();
  if (op.Has(Mod::kEqu)) return BothPair<T, Equ>();
  if (op.Has(Mod::kNeu)) return BothPair<T, Neu>();
  if (op.Has(Mod::kLtu)) return BothPair<T, Ltu>();
  if (op.Has(Mod::kLeu)) return BothPair<T, Leu>();
  if (op.Has(Mod::kGtu)) return BothPair<T, Gtu>();
  if (op.Has(Mod::kGeu)) return BothPair<T, Geu>();
  if (op.Has(Mod::kNum)) return BothPair<T, Num>();
  if (op.Has(Mod::kNan)) return BothPair<T, Nan>();
  return {};
}
template <class T>
Choice IntegerChoice(const ptx::Op& op) {
  if (op.Has(Mod::kEq)) return Both<T, false, Eq>();
  if (op.Has(Mod::kNe)) return Both<T, false, Ne>();
  if (op.HasAny({Mod::kLt, Mod::kLo})) return Both<T, false, Lt>();
  if (op.HasAny({Mod::kLe, Mod::kLs})) return Both<T, false, Le>();
  if (op.HasAny({Mod::kGt, Mod::kHi})) return Both<T, false, Gt>();
  if (op.HasAny({Mod::kGe, Mod::kHs})) return Both<T, false, Ge>();
  return {};
}

Choice Choose(const ptx::Op& op, Type type) {
  switch (type) {
    case Type::kS16:
      return IntegerChoice<int16_t>(op);
    case Type::kU16:
    case Type::kB16:
      return IntegerChoice<uint16_t>(op);
    case Type::kS32:
      return IntegerChoice<int32_t>(op);
    case Type::kU32:
    case Type::kB32:
      return IntegerChoice<uint32_t>(op);
    case Type::kS64:
      return IntegerChoice<int64_t>(op);
    case Type::kU64:
    case Type::kB64:
      return IntegerChoice<uint64_t>(op);
    case Type::kF32:
      return op.Has(Mod::kFtz) ? FloatChoice<float, true>(op) : FloatChoice<float, false>(op);
    case Type::kF64:
      return FloatChoice<double, false>(op);
    case Type::kF16:
      return FloatChoice<H16, false>(op);
    case Type::kBf16:
      return FloatChoice<B16, false>(op);
    case Type::kF16x2:
      return PairChoice<H16>(op);
    case Type::kBf16x2:
      return PairChoice<B16>(op);
    default:
      return {};
  }
}

template <class T, class U, int kMantissa>
const Insn* Testp(Warp& w, const Insn* i) {
  uint32_t bits = 0;
  constexpr U kSign = U(1) << (8 * sizeof(U) - 1), kInf = (kSign - 1) >> kMantissa << kMantissa;
  for (int l = 0; l < kLanes; ++l) {
    U v = Get<U>(At(w, i->r[1]), l) & ~kSign;
    bool is_nan = v > kInf, is_inf = v == kInf, is_sub = v != 0 && v < (U(1) << kMantissa);
    bool is_normal = !is_nan && !is_inf && v >= (U(1) << kMantissa);
    bool answers[] = {!is_nan && !is_inf, is_inf, !is_nan, is_nan, is_normal, is_sub};
    bits |= uint32_t{answers[i->aux]} << l;
  }
  SetPred(w, i->r[0], bits, w.mask);
  return i + 1;
}

}  // namespace

Handler PickCompare(const ptx::Op& op) {
  switch (op.base) {
    case Base::kSetp:
      return op.type_count == 1 ? Choose(op, op.type()).setp : nullptr;
    case Base::kSet:
      return op.type_count == 2 && ptx::TypeBytes(op.types[0]) <= 4 ? Choose(op, op.types[1]).set
                                                                    : nullptr;
    case Base::kTestp:
      if (op.type() == Type::kF32) return Testp<float, uint32_t, 23>;
      return op.type() == Type::kF64 ? Testp<double, uint64_t, 52> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
