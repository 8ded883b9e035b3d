// SPDX-License-Identifier: Apache-2.0
// Floating-point pieces shared by the handlers: canonical NaN, flush to zero, fused multiply-add,
// rounding modes, half formats.
//
// All three builds have to agree to the bit. So: no contraction, NaN results always canonical (as
// on NVIDIA devices), fused operations spelled out, conversions of half types done with integer
// arithmetic.
#pragma once

#include <immintrin.h>

#include "sim/exec/handlers/lanes.h"

namespace atp::sim::exec::ATP_VARIANT {

template <class To, class From>
ATP_INLINE To Bits(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

ATP_INLINE float Canonical(float v) { return v != v ? Bits<float>(0x7fffffffu) : v; }
ATP_INLINE double Canonical(double v) {
  return v != v ? Bits<double>(uint64_t{0x7fffffffffffffff}) : v;
}

template <bool kFtz>
ATP_INLINE float Flush(float v) {
  if constexpr (kFtz) {
    uint32_t bits = Bits<uint32_t>(v);
    return (bits & 0x7f800000u) == 0 ? Bits<float>(bits & 0x80000000u) : v;
  }
  return v;
}
template <bool kFtz>
ATP_INLINE double Flush(double v) {
  return v;
}

ATP_INLINE float Saturate(float v) {
  return v > 1.0f ? 1.0f : v > 0.0f ? v : 0.0f;
}  // NaN gives +0
ATP_INLINE double Saturate(double v) { return v > 1.0 ? 1.0 : v > 0.0 ? v : 0.0; }

ATP_INLINE double Fma(double a, double b, double c) { return __builtin_fma(a, b, c); }

// Without FMA instructions: the product of two floats is exact in double, and rounding the sum to
// odd makes the second rounding (to float) right in every mode (Boldo and Melquiond, "Emulation of
// FMA and correctly rounded sums", 2008).
ATP_INLINE double FmaOdd(float a, float b, float c) {
  double p = static_cast<double>(a) * static_cast<double>(b), z = static_cast<double>(c);
  double s = p + z;
  double back = s - p;
  double error = (p - (s - back)) + (z - back);
  int64_t bits = Bits<int64_t>(s);
  int64_t toward = Bits<int64_t>(error) < 0 ? -1 : 1;  // of the error, seen from zero upwards
  toward = bits < 0 ? -toward : toward;
  bool inexact = error < 0.0 || error > 0.0;
  int64_t step = inexact && (bits & 1) == 0 ? toward : 0;
  return Bits<double>(bits + step);
}

ATP_INLINE float Fma(float a, float b, float c) {
#ifdef __FMA__
  return __builtin_fmaf(a, b, c);
#else
  return static_cast<float>(FmaOdd(a, b, c));
#endif
}

// Holds a rounding mode for a piece of code whose operands come from memory and whose results go
// there: the barriers keep the arithmetic in between.
enum class Rounding : unsigned { kNearest = 0, kDown = 0x2000, kUp = 0x4000, kZero = 0x6000 };

template <Rounding kMode>
class RoundingScope {
 public:
  RoundingScope() {
    if (kMode == Rounding::kNearest) return;
    saved_ = _mm_getcsr();
    _mm_setcsr((saved_ & ~0x6000u) | static_cast<unsigned>(kMode));
    asm volatile("" ::: "memory");
  }
  ~RoundingScope() {
    if (kMode == Rounding::kNearest) return;
    asm volatile("" ::: "memory");
    _mm_setcsr(saved_);
  }

 private:
  unsigned saved_ = 0;
};

// --- half formats, as bits in the low 16 of a word ---

ATP_INLINE float HalfToFloat(uint32_t h) {
  uint32_t sign = (h & 0x8000u) << 16, rest = h & 0x7fffu;
  // Normal and subnormal numbers: rescale by a multiplication that is exact; infinities and NaN:
  // set the exponent.
  float scaled = Bits<float>(rest << 13) * 0x1p+112f;
  uint32_t special = Bits<uint32_t>(scaled) | 0x7f800000u;
  uint32_t bits = rest >= 0x7c00u ? special : Bits<uint32_t>(scaled);
  return Canonical(Bits<float>(bits | sign));
}

// Round to nearest even.
ATP_INLINE uint32_t FloatToHalf(float f) {
  uint32_t bits = Bits<uint32_t>(f), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  uint32_t normal = rest - 0x38000000u + 0xfffu + (rest >> 13 & 1);  // below 2^16 only
  // Subnormal halves are multiples of 2^-24: adding 0.5 lines them up with the last bit of a float.
  uint32_t tiny = Bits<uint32_t>(Bits<float>(rest) + 0.5f) - 0x3f000000u;
  uint32_t half = rest < 0x38800000u ? tiny : normal >> 13;
  half = rest >= 0x477ff000u ? 0x7c00u : half;
  half = rest > 0x7f800000u ? 0x7fffu : half;
  return half | (rest > 0x7f800000u ? 0 : sign);
}
ATP_INLINE uint32_t FloatToHalfZero(float f) {  // toward zero
  uint32_t bits = Bits<uint32_t>(f), sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;
  uint32_t tiny = static_cast<uint32_t>(
      static_cast<int32_t>(Bits<float>(rest < 0x38800000u ? rest : 0u) * 0x1p+24f));
  uint32_t half = rest < 0x38800000u ? tiny : (rest - 0x38000000u) >> 13;
  half = rest >= 0x47800000u ? (rest == 0x7f800000u ? 0x7c00u : 0x7bffu) : half;
  half = rest > 0x7f800000u ? 0x7fffu : half;
  return half | (rest > 0x7f800000u ? 0 : sign);
}

ATP_INLINE float Bf16ToFloat(uint32_t h) { return Canonical(Bits<float>(h << 16)); }
ATP_INLINE uint32_t FloatToBf16(float f) {
  uint32_t bits = Bits<uint32_t>(f);
  uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded;
}
ATP_INLINE uint32_t FloatToBf16Zero(float f) {
  uint32_t bits = Bits<uint32_t>(f);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : bits >> 16;
}
ATP_INLINE float FloatToTf32(float f) {  // nearest, ties away: keeps 10 bits of mantissa
  uint32_t bits = Bits<uint32_t>(f);
  bool special = (bits & 0x7f800000u) == 0x7f800000u;
  return Canonical(Bits<float>(special ? bits : (bits + 0x1000u) & 0xffffe000u));
}

// Doubles to half formats in one rounding: to float by rounding to odd, then as above.
ATP_INLINE float DoubleToFloatOdd(double d) {
  float f = static_cast<float>(d);
  double back = f;
  uint32_t bits = Bits<uint32_t>(f);
  bool away = (d < 0 ? back < d : back > d), inexact = back < d || back > d;
  if (inexact && away) bits -= 1;  // toward zero first
  if (inexact) bits |= 1;
  return Bits<float>(bits);
}

template <class T>
ATP_INLINE T MinOf(T a, T b) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  T equal = Bits<T>(Bits<U>(a) | Bits<U>(b));
  T smaller = a == b ? equal : a < b ? a : b;
  return Canonical(a != a ? b : b != b ? a : smaller);
}
template <class T>
ATP_INLINE T MaxOf(T a, T b) {
  using U = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  T equal = Bits<T>(Bits<U>(a) & Bits<U>(b));
  T larger = a == b ? equal : a > b ? a : b;
  return Canonical(a != a ? b : b != b ? a : larger);
}

}  // namespace atp::sim::exec::ATP_VARIANT
