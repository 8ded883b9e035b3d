// SPDX-License-Identifier: Apache-2.0
// The approximate functions of PTX. NVIDIA does not publish their bits, so these are good
// approximations of their own, computed in double with polynomials (the same operations in all
// builds) and rounded once: within 1 ulp of the true value, where the hardware promises 2 ulp or an
// absolute error of about 2^-20.9 (docs/sim.md, "Kernels").
#include "sim/exec/handlers/approx.h"

#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

// Adding and subtracting 1.5 * 2^52 rounds to an integer, which also appears in the low bits.
constexpr double kRounder = 0x1.8p52;

// 2^x for |x| < 1020.
ATP_INLINE double PowerOfTwo(double x) {
  double shifted = x + kRounder;
  int64_t n = Bits<int64_t>(shifted);
  double f = (x - (shifted - kRounder)) * 0x1.62e42fefa39efp-1;  // ln 2
  double p = 1.0 / 39916800;  // Taylor series of e^f to f^11; |f| <= 0.347
  p = p * f + 1.0 / 3628800;
  p = p * f + 1.0 / 362880;
  p = p * f + 1.0 / 40320;
  p = p * f + 1.0 / 5040;
  p = p * f + 1.0 / 720;
  p = p * f + 1.0 / 120;
  p = p * f + 1.0 / 24;
  p = p * f + 1.0 / 6;
  p = p * f + 0.5;
  p = p * f + 1.0;
  p = p * f + 1.0;
  return Bits<double>(Bits<int64_t>(p) + static_cast<int64_t>(static_cast<uint64_t>(n) << 52));
}

template <bool kFtz>
struct Ex2 {
  static ATP_INLINE float Do(float a) {
    a = Flush<kFtz>(a);
    float x = a > 200.0f ? 200.0f : a < -200.0f ? -200.0f : a;
    x = a != a ? 0.0f : x;
    float result = Flush<kFtz>(static_cast<float>(PowerOfTwo(x)));
    return a != a ? Canonical(a) : result;
  }
};

template <bool kFtz>
struct Lg2 {
  static ATP_INLINE float Do(float a) {
    a = Flush<kFtz>(a);
    double x = a;  // subnormal floats are normal doubles
    uint64_t bits = Bits<uint64_t>(x);
    // m in [sqrt(1/2), sqrt(2)), x = m * 2^e
    uint64_t shifted = bits - 0x3fe6a09e667f3bcdull;
    double m = Bits<double>((shifted & 0x000fffffffffffffull) + 0x3fe6a09e667f3bcdull);
    int32_t high = static_cast<int32_t>(static_cast<int64_t>(shifted) >> 32) >> 20;
    double e = static_cast<double>(high);
    double s = (m - 1.0) / (m + 1.0), z = s * s;
    double p = 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    p = p * z + 1.0;
    float result = static_cast<float>(e + s * p * 0x1.71547652b82fep+1);  // 2 / ln 2
    result = a == 0.0f ? -__builtin_inff() : result;
    result = a == __builtin_inff() ? a : result;
    return a < 0.0f || a != a ? Bits<float>(0x7fffffffu) : result;
  }
};

// sin(x + quarter * pi/2). Exact reduction up to |x| about 2^30, which is far beyond where the
// hardware is accurate.
ATP_INLINE double SinQuarter(double x, int64_t quarter) {
  double shifted = x * 0x1.45f306dc9c883p-1 + kRounder;  // 2 / pi
  int64_t q = Bits<int64_t>(shifted) + quarter;
  double k = shifted - kRounder;
  double r = (x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a626331p-34;
  double z = r * r;
  double s = -1.0 / 1307674368000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800;
  s = s * z + 1.0 / 362880;
  s = s * z - 1.0 / 5040;
  s = s * z + 1.0 / 120;
  s = s * z - 1.0 / 6;
  s = (s * z + 1.0) * r;
  double c = 1.0 / 20922789888000.0;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600;
  c = c * z - 1.0 / 3628800;
  c = c * z + 1.0 / 40320;
  c = c * z - 1.0 / 720;
  c = c * z + 1.0 / 24;
  c = c * z - 0.5;
  c = c * z + 1.0;
  double v = (q & 1) != 0 ? c : s;
  return (q & 2) != 0 ? -v : v;
}

template <bool kFtz, int kQuarter>
struct Sine {
  static ATP_INLINE float Do(float a) {
    a = Flush<kFtz>(a);
    bool finite = (Bits<uint32_t>(a) & 0x7f800000u) != 0x7f800000u;
    float x = a < 0x1p30f && a > -0x1p30f
                  ? a
                  : 0.0f;  // no meaning beyond; the hardware is off long before
    float result = static_cast<float>(SinQuarter(x, kQuarter));
    result = kQuarter == 0 && a == 0.0f ? a : result;
    return finite ? Flush<kFtz>(result) : Bits<float>(0x7fffffffu);
  }
};

struct Tanh {
  static ATP_INLINE float Do(float a) {
    double x = a;
    double limited = x > 20.0 ? 20.0 : x < -20.0 ? -20.0 : x;
    limited = a != a ? 0.0 : limited;
    double e = PowerOfTwo(limited * 0x1.71547652b82fep+1);  // e^2x
    double big = 1.0 - 2.0 / (e + 1.0);
    double small = x - x * x * x * (1.0 / 3);
    double result = x < 1e-3 && x > -1e-3 ? small : big;
    return a != a ? Canonical(a) : static_cast<float>(result);
  }
};

template <bool kFtz>
struct Rsqrt {
  static ATP_INLINE float Do(float a) {
    a = Flush<kFtz>(a);
    return Canonical(static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(a))));
  }
  static ATP_INLINE double Do(double a) { return Canonical(1.0 / __builtin_sqrt(a)); }
};

// Double approximations look at the upper half of their operand only, and give zeros in the lower
// half.
struct Rcp64 {
  static ATP_INLINE double Do(double a) {
    uint64_t bits = Bits<uint64_t>(a) & 0xffffffff00000000ull;
    if ((bits & 0x7ff0000000000000ull) == 0) bits &= uint64_t{1} << 63;
    double r = Canonical(1.0 / Bits<double>(bits));
    uint64_t result = Bits<uint64_t>(r) & 0xffffffff00000000ull;
    if ((result & 0x7ff0000000000000ull) == 0) result &= uint64_t{1} << 63;
    return Bits<double>(r != r ? Bits<uint64_t>(r) : result);
  }
};
struct Rsqrt64 {
  static ATP_INLINE double Do(double a) {
    uint64_t bits = Bits<uint64_t>(a) & 0xffffffff00000000ull;
    if ((bits & 0x7ff0000000000000ull) == 0) bits &= uint64_t{1} << 63;
    double r = Canonical(1.0 / __builtin_sqrt(Bits<double>(bits)));
    return Bits<double>(r != r ? Bits<uint64_t>(r) : Bits<uint64_t>(r) & 0xffffffff00000000ull);
  }
};

template <template <bool> class F>
Handler Approx(const ptx::Op& op) {
  if (op.type() != Type::kF32) return nullptr;
  return op.Has(Mod::kFtz) ? Op1<F<true>, float, float> : Op1<F<false>, float, float>;
}
template <bool kFtz>
using Sin = Sine<kFtz, 0>;
template <bool kFtz>
using Cos = Sine<kFtz, 1>;

}  // namespace

float ApproxExp2(float v) { return Ex2<false>::Do(v); }
float ApproxTanh(float v) { return Tanh::Do(v); }

Handler PickApprox(const ptx::Op& op) {
  if (!op.Has(Mod::kApprox)) return nullptr;
  bool is_double = op.type() == Type::kF64;
  switch (op.base) {
    case Base::kEx2:
      return Approx<Ex2>(op);
    case Base::kLg2:
      return Approx<Lg2>(op);
    case Base::kSin:
      return Approx<Sin>(op);
    case Base::kCos:
      return Approx<Cos>(op);
    case Base::kTanh:
      return op.type() == Type::kF32 ? Op1<Tanh, float, float> : nullptr;
    case Base::kRsqrt:
      if (!is_double) return Approx<Rsqrt>(op);
      return op.Has(Mod::kFtz) ? Op1<Rsqrt64, double, double> : Op1<Rsqrt<false>, double, double>;
    case Base::kRcp:
      return is_double ? Op1<Rcp64, double, double> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
