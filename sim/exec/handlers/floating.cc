// SPDX-License-Identifier: Apache-2.0
// f32 and f64 arithmetic with IEEE results in every rounding mode.
#include "sim/exec/handlers/floating.h"

#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

struct Add {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a + b;
  }
};
struct Sub {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a - b;
  }
};
struct Mul {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a * b;
  }
};
struct Div {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a / b;
  }
};
struct Rcp {
  template <class T>
  static ATP_INLINE T Do(T a) {
    return T(1) / a;
  }
};
struct Sqrt {
  static ATP_INLINE float Do(float a) { return __builtin_sqrtf(a); }
  static ATP_INLINE double Do(double a) { return __builtin_sqrt(a); }
};

template <class T, bool kFtz, bool kSat>
ATP_INLINE T Finish(T v) {
  v = Flush<kFtz>(v);
  return kSat ? Saturate(v) : Canonical(v);
}

template <class F, class T, Rounding kMode, bool kFtz, bool kSat>
const Insn* Float2(Warp& w, const Insn* i) {
  RoundingScope<kMode> scope;
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]);
  return Each<T>(w, i, [=](int l) {
    return Finish<T, kFtz, kSat>(
        F::template Do<T>(Flush<kFtz>(Get<T>(a, l)), Flush<kFtz>(Get<T>(b, l))));
  });
}

template <class F, class T, Rounding kMode, bool kFtz>
const Insn* Float1(Warp& w, const Insn* i) {
  RoundingScope<kMode> scope;
  const uint8_t* a = At(w, i->r[1]);
  return Each<T>(w, i,
                 [=](int l) { return Finish<T, kFtz, false>(F::Do(Flush<kFtz>(Get<T>(a, l)))); });
}

template <class T, Rounding kMode, bool kFtz, bool kSat>
const Insn* FloatFma(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]);
#ifndef __FMA__
  if constexpr (kMode != Rounding::kNearest && sizeof(T) == 4) {
    // The sum that is rounded to odd needs the nearest mode; only the last step uses the wanted
    // one.
    double odd[kLanes];
    ATP_LANES(l) {
      float x = Flush<kFtz>(Get<float>(a, l)), y = Flush<kFtz>(Get<float>(b, l)),
            z = Flush<kFtz>(Get<float>(c, l));
      double sum = FmaOdd(x, y, z);
      // A sum that is exactly zero is -0 when rounding down, unless both terms are +0.
      bool positive = Bits<int64_t>(double{x} * double{y}) >= 0 && Bits<int32_t>(z) >= 0;
      odd[l] = kMode == Rounding::kDown && sum == 0.0 && !positive ? -0.0 : sum;
    }
    const double* sums = odd;
    asm volatile("" : "+r"(sums)::"memory");
    RoundingScope<kMode> scope;
    return Each<float>(
        w, i, [=](int l) { return Finish<float, kFtz, kSat>(static_cast<float>(sums[l])); });
  }
#endif
  RoundingScope<kMode> scope;
  return Each<T>(w, i, [=](int l) {
    return Finish<T, kFtz, kSat>(
        Fma(Flush<kFtz>(Get<T>(a, l)), Flush<kFtz>(Get<T>(b, l)), Flush<kFtz>(Get<T>(c, l))));
  });
}

template <bool kFtz>
struct Neg {
  static ATP_INLINE float Do(float a) {
    return Bits<float>(Bits<uint32_t>(Flush<kFtz>(a)) ^ 0x80000000u);
  }
  static ATP_INLINE double Do(double a) {
    return Bits<double>(Bits<uint64_t>(a) ^ uint64_t{1} << 63);
  }
};
template <bool kFtz>
struct Abs {
  static ATP_INLINE float Do(float a) {
    return Bits<float>(Bits<uint32_t>(Flush<kFtz>(a)) & 0x7fffffffu);
  }
  static ATP_INLINE double Do(double a) {
    return Bits<double>(Bits<uint64_t>(a) & ~(uint64_t{1} << 63));
  }
};
template <bool kMin, bool kFtz, bool kNan, bool kXorsign>
struct MinMax {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    constexpr U kSign = U(1) << (8 * sizeof(U) - 1);
    a = Flush<kFtz>(a), b = Flush<kFtz>(b);
    U sign = (Bits<U>(a) ^ Bits<U>(b)) & kSign;
    if (kXorsign) a = Bits<T>(Bits<U>(a) & ~kSign), b = Bits<T>(Bits<U>(b) & ~kSign);
    T result = kMin ? MinOf(a, b) : MaxOf(a, b);
    if (kNan) result = a != a || b != b ? Canonical(a + b) : result;
    return kXorsign ? Bits<T>(Bits<U>(result) | sign) : result;
  }
};

template <class F, class T, bool kFtz, bool kSat>
Handler Mode2(const ptx::Op& op) {
  if (op.Has(Mod::kRz)) return Float2<F, T, Rounding::kZero, kFtz, kSat>;
  if (op.Has(Mod::kRm)) return Float2<F, T, Rounding::kDown, kFtz, kSat>;
  if (op.Has(Mod::kRp)) return Float2<F, T, Rounding::kUp, kFtz, kSat>;
  return Float2<F, T, Rounding::kNearest, kFtz, kSat>;
}
template <class F>
Handler Arithmetic2(const ptx::Op& op) {
  bool ftz = op.Has(Mod::kFtz), sat = op.Has(Mod::kSat);
  if (op.type() == Type::kF64) return ftz || sat ? nullptr : Mode2<F, double, false, false>(op);
  if (op.type() != Type::kF32) return nullptr;
  if (ftz) return sat ? Mode2<F, float, true, true>(op) : Mode2<F, float, true, false>(op);
  return sat ? Mode2<F, float, false, true>(op) : Mode2<F, float, false, false>(op);
}

template <class F, class T, bool kFtz>
Handler Mode1(const ptx::Op& op) {
  if (op.Has(Mod::kRz)) return Float1<F, T, Rounding::kZero, kFtz>;
  if (op.Has(Mod::kRm)) return Float1<F, T, Rounding::kDown, kFtz>;
  if (op.Has(Mod::kRp)) return Float1<F, T, Rounding::kUp, kFtz>;
  return Float1<F, T, Rounding::kNearest, kFtz>;
}
template <class F>
Handler Arithmetic1(const ptx::Op& op) {
  if (op.type() == Type::kF64) return Mode1<F, double, false>(op);
  if (op.type() != Type::kF32) return nullptr;
  return op.Has(Mod::kFtz) ? Mode1<F, float, true>(op) : Mode1<F, float, false>(op);
}

template <class T, bool kFtz, bool kSat>
Handler ModeFma(const ptx::Op& op) {
  if (op.Has(Mod::kRz)) return FloatFma<T, Rounding::kZero, kFtz, kSat>;
  if (op.Has(Mod::kRm)) return FloatFma<T, Rounding::kDown, kFtz, kSat>;
  if (op.Has(Mod::kRp)) return FloatFma<T, Rounding::kUp, kFtz, kSat>;
  return FloatFma<T, Rounding::kNearest, kFtz, kSat>;
}
Handler PickFma(const ptx::Op& op) {
  bool ftz = op.Has(Mod::kFtz), sat = op.Has(Mod::kSat);
  if (op.type() == Type::kF64) return ftz || sat ? nullptr : ModeFma<double, false, false>(op);
  if (op.type() != Type::kF32) return nullptr;
  if (ftz) return sat ? ModeFma<float, true, true>(op) : ModeFma<float, true, false>(op);
  return sat ? ModeFma<float, false, true>(op) : ModeFma<float, false, false>(op);
}

template <bool kMin, bool kFtz>
Handler MinMax32(const ptx::Op& op) {
  bool nan = op.Has(Mod::kNan), xorsign = op.Has(Mod::kXorsign);
  if (nan)
    return xorsign ? Op2<MinMax<kMin, kFtz, true, true>, float, float, float>
                   : Op2<MinMax<kMin, kFtz, true, false>, float, float, float>;
  return xorsign ? Op2<MinMax<kMin, kFtz, false, true>, float, float, float>
                 : Op2<MinMax<kMin, kFtz, false, false>, float, float, float>;
}
Handler PickMinMax(const ptx::Op& op) {
  bool min = op.base == Base::kMin, ftz = op.Has(Mod::kFtz);
  if (op.type() == Type::kF64) {
    return min ? Op2<MinMax<true, false, false, false>, double, double, double>
               : Op2<MinMax<false, false, false, false>, double, double, double>;
  }
  if (op.type() != Type::kF32) return nullptr;
  if (min) return ftz ? MinMax32<true, true>(op) : MinMax32<true, false>(op);
  return ftz ? MinMax32<false, true>(op) : MinMax32<false, false>(op);
}
template <template <bool> class F>
Handler PickSign(const ptx::Op& op) {
  if (op.type() == Type::kF64) return Op1<F<false>, double, double>;
  if (op.type() != Type::kF32) return nullptr;
  return op.Has(Mod::kFtz) ? Op1<F<true>, float, float> : Op1<F<false>, float, float>;
}

}  // namespace

Handler PickFloat(const ptx::Op& op) {
  switch (op.base) {
    case Base::kAdd:
      return Arithmetic2<Add>(op);
    case Base::kSub:
      return Arithmetic2<Sub>(op);
    case Base::kMul:
      return Arithmetic2<Mul>(op);
    case Base::kFma:
    case Base::kMad:
      return PickFma(op);
    case Base::kDiv:  // .full and .approx give the IEEE quotient, which lies within their bounds
      return Arithmetic2<Div>(op);
    case Base::kRcp:
      return Arithmetic1<Rcp>(op);
    case Base::kSqrt:
      return Arithmetic1<Sqrt>(op);
    case Base::kMin:
    case Base::kMax:
      return PickMinMax(op);
    case Base::kNeg:
      return PickSign<Neg>(op);
    case Base::kAbs:
      return PickSign<Abs>(op);
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
