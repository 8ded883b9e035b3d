// SPDX-License-Identifier: Apache-2.0
// cvt in all its forms. Out-of-range float to integer saturates; NaN gives 0, or the sign bit alone
// for f64 sources and 64-bit results.
#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Mod;
using ptx::Type;

template <class D, class S, bool kSat>
struct IntToInt {
  static ATP_INLINE D Do(S v) {
    if constexpr (!kSat) return static_cast<D>(v);
    constexpr bool kSignedD = std::is_signed_v<D>, kSignedS = std::is_signed_v<S>;
    constexpr uint64_t kMax = (~uint64_t{0}) >> (64 - 8 * sizeof(D) + (kSignedD ? 1 : 0));
    if (kSignedS) {
      int64_t x = static_cast<int64_t>(v);
      if (!kSignedD) {
        if (x < 0) return 0;
      } else {
        constexpr int64_t kMin = -static_cast<int64_t>(kMax) - 1;
        if (x < kMin) return static_cast<D>(kMin);
        if (x < 0) return static_cast<D>(x);
      }
    }
    return static_cast<uint64_t>(v) > kMax ? static_cast<D>(kMax) : static_cast<D>(v);
  }
};

struct Truncate {
  template <class T>
  static ATP_INLINE T Do(T v) {
    return sizeof(T) == 4 ? T(__builtin_truncf(float(v))) : T(__builtin_trunc(v));
  }
};
struct Floor {
  template <class T>
  static ATP_INLINE T Do(T v) {
    return sizeof(T) == 4 ? T(__builtin_floorf(float(v))) : T(__builtin_floor(v));
  }
};
struct Ceil {
  template <class T>
  static ATP_INLINE T Do(T v) {
    return sizeof(T) == 4 ? T(__builtin_ceilf(float(v))) : T(__builtin_ceil(v));
  }
};
struct Even {  // to nearest: adding and taking away 2^23 (2^52), keeping the sign of zero
  static ATP_INLINE float Do(float v) {
    float magnitude = Bits<float>(Bits<uint32_t>(v) & 0x7fffffffu);
    float rounded = (magnitude + 0x1p23f) - 0x1p23f;
    rounded = magnitude < 0x1p23f ? rounded : magnitude;
    return Bits<float>(Bits<uint32_t>(rounded) | (Bits<uint32_t>(v) & 0x80000000u));
  }
  static ATP_INLINE double Do(double v) {
    double magnitude = Bits<double>(Bits<uint64_t>(v) & ~(uint64_t{1} << 63));
    double rounded = (magnitude + 0x1p52) - 0x1p52;
    rounded = magnitude < 0x1p52 ? rounded : magnitude;
    return Bits<double>(Bits<uint64_t>(rounded) | (Bits<uint64_t>(v) & uint64_t{1} << 63));
  }
};

// Limits of D that a float type can hold exactly: 2^bits and -2^(bits-1).
template <class D, class R, bool kFtz>
struct FloatToInt {
  template <class S>
  static ATP_INLINE D Do(S v) {
    v = R::Do(Flush<kFtz>(v));
    constexpr int kBits = 8 * sizeof(D) - (std::is_signed_v<D> ? 1 : 0);
    constexpr S kLimit = static_cast<S>(uint64_t{1} << (kBits - 1)) * S(2);
    constexpr S kLow = std::is_signed_v<D> ? -kLimit : S(0);
    constexpr uint64_t kMaxBits = (~uint64_t{0}) >> (64 - kBits);
    constexpr D kNanValue = sizeof(S) == 8 || sizeof(D) == 8
                                ? static_cast<D>(uint64_t{1} << (8 * sizeof(D) - 1))
                                : D(0);
    bool above = v >= kLimit, below = v < kLow, in_range = !above && !below && v == v;
    D result = static_cast<D>(in_range ? v : S(0));
    result = above ? static_cast<D>(kMaxBits) : result;
    result = below ? static_cast<D>(std::is_signed_v<D> ? kMaxBits + 1 : 0) : result;
    return v != v ? kNanValue : result;
  }
};

template <class D, class S, Rounding kMode, bool kSat>
const Insn* IntToFloat(Warp& w, const Insn* i) {
  RoundingScope<kMode> scope;
  const uint8_t* a = At(w, i->r[1]);
  return Each<D>(w, i, [=](int l) {
    D v = static_cast<D>(Get<S>(a, l));
    return kSat ? Saturate(v) : v;
  });
}

template <class D, class S, Rounding kMode, bool kFtz, bool kSat>
const Insn* FloatToFloat(Warp& w, const Insn* i) {
  RoundingScope<kMode> scope;
  const uint8_t* a = At(w, i->r[1]);
  return Each<D>(w, i, [=](int l) {
    D v = Flush<kFtz>(static_cast<D>(Flush<kFtz>(Get<S>(a, l))));
    return kSat ? Saturate(v) : Canonical(v);
  });
}
template <class R, class T, bool kFtz, bool kSat>
struct RoundFloat {
  static ATP_INLINE T Do(T v) {
    T r = R::Do(Flush<kFtz>(v));
    return kSat ? Saturate(r) : Canonical(r);
  }
};

// --- half formats ---
struct ToF16 {
  static ATP_INLINE uint32_t Do(float v) { return FloatToHalf(v); }
};
struct ToF16Zero {
  static ATP_INLINE uint32_t Do(float v) { return FloatToHalfZero(v); }
};
struct ToBf16 {
  static ATP_INLINE uint32_t Do(float v) { return FloatToBf16(v); }
};
struct ToBf16Zero {
  static ATP_INLINE uint32_t Do(float v) { return FloatToBf16Zero(v); }
};
struct FromF16 {
  static ATP_INLINE float Do(uint32_t v) { return HalfToFloat(v & 0xffff); }
};
struct FromBf16 {
  static ATP_INLINE float Do(uint32_t v) { return Bf16ToFloat(v & 0xffff); }
};

ATP_INLINE float Relu(float v) { return v > 0.0f || v != v ? v : 0.0f; }

template <class To, class S, bool kRelu, bool kSat, bool kFtz>
struct NarrowHalf {  // f32, f64 or integer to half
  static ATP_INLINE uint32_t Do(S v) {
    float f;
    if constexpr (sizeof(S) == 8 || std::is_integral_v<S>) {
      // 64-bit integers: the lowest bits only matter as "not zero" beyond 2^53, where f16 has long
      // overflowed.
      f = DoubleToFloatOdd(static_cast<double>(v));
    } else {
      f = Flush<kFtz>(v);
    }
    if (kRelu) f = Relu(f);
    if (kSat) f = Saturate(f);
    return To::Do(f);
  }
};
template <class From, class D, bool kSat>
struct WidenHalf {
  static ATP_INLINE D Do(uint32_t v) {
    D r = static_cast<D>(From::Do(v));
    return kSat ? Saturate(r) : r;
  }
};
template <class From, class D, class R>
struct HalfToInt {
  static ATP_INLINE D Do(uint32_t v) {
    return FloatToInt<D, R, false>::template Do<float>(From::Do(v));
  }
};
template <class From, class To, class R>
struct RoundHalf {
  static ATP_INLINE uint32_t Do(uint32_t v) { return To::Do(R::Do(From::Do(v))); }
};
template <class To, bool kRelu>
struct PackHalves {  // cvt.f16x2.f32 d, a, b: a in the upper half
  static ATP_INLINE uint32_t Do(float a, float b) {
    if (kRelu) a = Relu(a), b = Relu(b);
    return To::Do(a) << 16 | (To::Do(b) & 0xffff);
  }
};
struct Identity {
  static ATP_INLINE float Do(float v) { return v; }
};
struct ToTf32 {
  static ATP_INLINE float Do(float v) { return FloatToTf32(v); }
};

template <class D, class S>
Handler PickIntToInt(bool sat) {
  return sat ? Op1<IntToInt<D, S, true>, D, S> : Op1<IntToInt<D, S, false>, D, S>;
}

template <class D, class S, bool kSat>
Handler IntToFloatMode(const ptx::Op& op) {
  if (op.Has(Mod::kRz)) return IntToFloat<D, S, Rounding::kZero, kSat>;
  if (op.Has(Mod::kRm)) return IntToFloat<D, S, Rounding::kDown, kSat>;
  if (op.Has(Mod::kRp)) return IntToFloat<D, S, Rounding::kUp, kSat>;
  return IntToFloat<D, S, Rounding::kNearest, kSat>;
}
template <class D, class S>
Handler FromInteger(const ptx::Op& op) {
  return op.Has(Mod::kSat) ? IntToFloatMode<D, S, true>(op) : IntToFloatMode<D, S, false>(op);
}
template <class S>
Handler FromIntegerTo(const ptx::Op& op, Type to) {
  bool sat = op.Has(Mod::kSat);
  switch (to) {
    case Type::kU8:
      return PickIntToInt<uint8_t, S>(sat);
    case Type::kS8:
      return PickIntToInt<int8_t, S>(sat);
    case Type::kU16:
      return PickIntToInt<uint16_t, S>(sat);
    case Type::kS16:
      return PickIntToInt<int16_t, S>(sat);
    case Type::kU32:
      return PickIntToInt<uint32_t, S>(sat);
    case Type::kS32:
      return PickIntToInt<int32_t, S>(sat);
    case Type::kU64:
      return PickIntToInt<uint64_t, S>(sat);
    case Type::kS64:
      return PickIntToInt<int64_t, S>(sat);
    case Type::kF32:
      return FromInteger<float, S>(op);
    case Type::kF64:
      return FromInteger<double, S>(op);
    case Type::kF16:
      return op.HasAny({Mod::kRm, Mod::kRp}) ? nullptr
             : op.Has(Mod::kRz) ? Op1<NarrowHalf<ToF16Zero, S, false, false, false>, uint32_t, S>
                                : Op1<NarrowHalf<ToF16, S, false, false, false>, uint32_t, S>;
    case Type::kBf16:
      return op.HasAny({Mod::kRm, Mod::kRp}) ? nullptr
             : op.Has(Mod::kRz) ? Op1<NarrowHalf<ToBf16Zero, S, false, false, false>, uint32_t, S>
                                : Op1<NarrowHalf<ToBf16, S, false, false, false>, uint32_t, S>;
    default:
      return nullptr;
  }
}

template <class S, class R, bool kFtz>
Handler ToIntegerRounded(Type to) {
  switch (to) {
    case Type::kU8:
      return Op1<FloatToInt<uint8_t, R, kFtz>, uint8_t, S>;
    case Type::kS8:
      return Op1<FloatToInt<int8_t, R, kFtz>, int8_t, S>;
    case Type::kU16:
      return Op1<FloatToInt<uint16_t, R, kFtz>, uint16_t, S>;
    case Type::kS16:
      return Op1<FloatToInt<int16_t, R, kFtz>, int16_t, S>;
    case Type::kU32:
      return Op1<FloatToInt<uint32_t, R, kFtz>, uint32_t, S>;
    case Type::kS32:
      return Op1<FloatToInt<int32_t, R, kFtz>, int32_t, S>;
    case Type::kU64:
      return Op1<FloatToInt<uint64_t, R, kFtz>, uint64_t, S>;
    case Type::kS64:
      return Op1<FloatToInt<int64_t, R, kFtz>, int64_t, S>;
    default:
      return nullptr;
  }
}
template <class S, bool kFtz>
Handler ToInteger(const ptx::Op& op, Type to) {
  if (op.Has(Mod::kRni)) return ToIntegerRounded<S, Even, kFtz>(to);
  if (op.Has(Mod::kRmi)) return ToIntegerRounded<S, Floor, kFtz>(to);
  if (op.Has(Mod::kRpi)) return ToIntegerRounded<S, Ceil, kFtz>(to);
  return ToIntegerRounded<S, Truncate, kFtz>(to);
}
template <class T, bool kFtz, bool kSat>
Handler RoundToIntegral(const ptx::Op& op) {
  if (op.Has(Mod::kRni)) return Op1<RoundFloat<Even, T, kFtz, kSat>, T, T>;
  if (op.Has(Mod::kRmi)) return Op1<RoundFloat<Floor, T, kFtz, kSat>, T, T>;
  if (op.Has(Mod::kRpi)) return Op1<RoundFloat<Ceil, T, kFtz, kSat>, T, T>;
  return Op1<RoundFloat<Truncate, T, kFtz, kSat>, T, T>;
}
template <class D, class S, bool kFtz, bool kSat>
Handler FloatMode(const ptx::Op& op) {
  if (op.Has(Mod::kRz)) return FloatToFloat<D, S, Rounding::kZero, kFtz, kSat>;
  if (op.Has(Mod::kRm)) return FloatToFloat<D, S, Rounding::kDown, kFtz, kSat>;
  if (op.Has(Mod::kRp)) return FloatToFloat<D, S, Rounding::kUp, kFtz, kSat>;
  return FloatToFloat<D, S, Rounding::kNearest, kFtz, kSat>;
}
template <class D, class S>
Handler FloatBetween(const ptx::Op& op) {
  bool ftz = op.Has(Mod::kFtz), sat = op.Has(Mod::kSat);
  if constexpr (std::is_same_v<D, S>) {
    if (op.HasAny({Mod::kRni, Mod::kRzi, Mod::kRmi, Mod::kRpi})) {
      if (ftz)
        return sat ? RoundToIntegral<D, true, true>(op) : RoundToIntegral<D, true, false>(op);
      return sat ? RoundToIntegral<D, false, true>(op) : RoundToIntegral<D, false, false>(op);
    }
  }
  if (ftz) return sat ? FloatMode<D, S, true, true>(op) : FloatMode<D, S, true, false>(op);
  return sat ? FloatMode<D, S, false, true>(op) : FloatMode<D, S, false, false>(op);
}

template <class To, class S, bool kFtz>
Handler ToHalf(const ptx::Op& op) {
  bool relu = op.Has(Mod::kRelu), sat = op.Has(Mod::kSat);
  if (relu) return sat ? nullptr : Op1<NarrowHalf<To, S, true, false, kFtz>, uint32_t, S>;
  return sat ? Op1<NarrowHalf<To, S, false, true, kFtz>, uint32_t, S>
             : Op1<NarrowHalf<To, S, false, false, kFtz>, uint32_t, S>;
}
template <class S, bool kFtz>
Handler FloatToHalfType(const ptx::Op& op, Type to) {
  if (op.HasAny({Mod::kRm, Mod::kRp})) return nullptr;
  bool zero = op.Has(Mod::kRz);
  if (to == Type::kF16) return zero ? ToHalf<ToF16Zero, S, kFtz>(op) : ToHalf<ToF16, S, kFtz>(op);
  return zero ? ToHalf<ToBf16Zero, S, kFtz>(op) : ToHalf<ToBf16, S, kFtz>(op);
}

Handler FromF32(const ptx::Op& op, Type to) {
  bool ftz = op.Has(Mod::kFtz), relu = op.Has(Mod::kRelu), zero = op.Has(Mod::kRz);
  switch (to) {
    case Type::kF32:
      return FloatBetween<float, float>(op);
    case Type::kF64:
      return FloatBetween<double, float>(op);
    case Type::kF16:
    case Type::kBf16:
      return ftz ? FloatToHalfType<float, true>(op, to) : FloatToHalfType<float, false>(op, to);
    case Type::kF16x2:
      if (zero)
        return relu ? Op2<PackHalves<ToF16Zero, true>, uint32_t, float, float>
                    : Op2<PackHalves<ToF16Zero, false>, uint32_t, float, float>;
      return relu ? Op2<PackHalves<ToF16, true>, uint32_t, float, float>
                  : Op2<PackHalves<ToF16, false>, uint32_t, float, float>;
    case Type::kBf16x2:
      if (zero)
        return relu ? Op2<PackHalves<ToBf16Zero, true>, uint32_t, float, float>
                    : Op2<PackHalves<ToBf16Zero, false>, uint32_t, float, float>;
      return relu ? Op2<PackHalves<ToBf16, true>, uint32_t, float, float>
                  : Op2<PackHalves<ToBf16, false>, uint32_t, float, float>;
    case Type::kTf32:
      return op.Has(Mod::kRna) ? Op1<ToTf32, float, float> : nullptr;
    default:
      return ftz ? ToInteger<float, true>(op, to) : ToInteger<float, false>(op, to);
  }
}
Handler FromF64(const ptx::Op& op, Type to) {
  switch (to) {
    case Type::kF32:
      return FloatBetween<float, double>(op);
    case Type::kF64:
      return FloatBetween<double, double>(op);
    case Type::kF16:
    case Type::kBf16:
      return FloatToHalfType<double, false>(op, to);
    default:
      return ToInteger<double, false>(op, to);
  }
}

template <class From, class To, class D>
Handler HalfToIntRounded(const ptx::Op& op) {
  if (op.Has(Mod::kRni)) return Op1<HalfToInt<From, D, Even>, D, uint32_t>;
  if (op.Has(Mod::kRmi)) return Op1<HalfToInt<From, D, Floor>, D, uint32_t>;
  if (op.Has(Mod::kRpi)) return Op1<HalfToInt<From, D, Ceil>, D, uint32_t>;
  return Op1<HalfToInt<From, D, Truncate>, D, uint32_t>;
}
template <class From, class Same, class Other>
Handler FromHalf(const ptx::Op& op, Type to, bool same) {
  bool sat = op.Has(Mod::kSat);
  switch (to) {
    case Type::kF32:
      return sat ? Op1<WidenHalf<From, float, true>, float, uint32_t>
                 : Op1<WidenHalf<From, float, false>, float, uint32_t>;
    case Type::kF64:
      return sat ? Op1<WidenHalf<From, double, true>, double, uint32_t>
                 : Op1<WidenHalf<From, double, false>, double, uint32_t>;
    case Type::kF16:
    case Type::kBf16:
      if (!same) return Op1<RoundHalf<From, Other, Identity>, uint32_t, uint32_t>;
      if (op.Has(Mod::kRni)) return Op1<RoundHalf<From, Same, Even>, uint32_t, uint32_t>;
      if (op.Has(Mod::kRzi)) return Op1<RoundHalf<From, Same, Truncate>, uint32_t, uint32_t>;
      if (op.Has(Mod::kRmi)) return Op1<RoundHalf<From, Same, Floor>, uint32_t, uint32_t>;
      if (op.Has(Mod::kRpi)) return Op1<RoundHalf<From, Same, Ceil>, uint32_t, uint32_t>;
      return Op1<RoundHalf<From, Same, Identity>, uint32_t, uint32_t>;
    case Type::kU8:
      return HalfToIntRounded<From, Same, uint8_t>(op);
    case Type::kS8:
      return HalfToIntRounded<From, Same, int8_t>(op);
    case Type::kU16:
      return HalfToIntRounded<From, Same, uint16_t>(op);
    case Type::kS16:
      return HalfToIntRounded<From, Same, int16_t>(op);
    case Type::kU32:
      return HalfToIntRounded<From, Same, uint32_t>(op);
    case Type::kS32:
      return HalfToIntRounded<From, Same, int32_t>(op);
    case Type::kU64:
      return HalfToIntRounded<From, Same, uint64_t>(op);
    case Type::kS64:
      return HalfToIntRounded<From, Same, int64_t>(op);
    default:
      return nullptr;
  }
}

}  // namespace

Handler PickConvert(const ptx::Op& op) {
  if (op.type_count != 2) return nullptr;
  Type to = op.types[0];
  switch (op.types[1]) {
    case Type::kU8:
      return FromIntegerTo<uint8_t>(op, to);
    case Type::kS8:
      return FromIntegerTo<int8_t>(op, to);
    case Type::kU16:
      return FromIntegerTo<uint16_t>(op, to);
    case Type::kS16:
      return FromIntegerTo<int16_t>(op, to);
    case Type::kU32:
      return FromIntegerTo<uint32_t>(op, to);
    case Type::kS32:
      return FromIntegerTo<int32_t>(op, to);
    case Type::kU64:
      return FromIntegerTo<uint64_t>(op, to);
    case Type::kS64:
      return FromIntegerTo<int64_t>(op, to);
    case Type::kF32:
      return FromF32(op, to);
    case Type::kF64:
      return FromF64(op, to);
    case Type::kF16:
      return FromHalf<FromF16, ToF16, ToBf16>(op, to, to == Type::kF16);
    case Type::kBf16:
      return FromHalf<FromBf16, ToBf16, ToF16>(op, to, to == Type::kBf16);
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
