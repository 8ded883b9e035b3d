// SPDX-License-Identifier: Apache-2.0
// Floating-point operations against the host's own arithmetic under fesetround; approximate
// functions against their documented error.
#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

#include "tests/sim/exec/one_op.h"

namespace atp::sim {
namespace {

constexpr size_t kCount = 2048;

class Floating : public EachVariant {};
ATP_FOR_EACH_VARIANT(Floating);

template <class T>
bool SameBits(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class D, class A>
void Check(const std::string& body, int rounding, std::function<D(A, A, A)> expected,
           unsigned seed = 1) {
  std::vector<A> a = FloatOperands<A>(kCount, seed), b = FloatOperands<A>(kCount, seed + 10),
                 c = FloatOperands<A>(kCount, seed + 20);
  for (size_t i = 0; i < kCount; i += 3)
    c[i] = -static_cast<A>(static_cast<double>(a[i]) * static_cast<double>(b[i]));  // cancellation
  std::vector<D> d = RunOp<D, A, A, A>(body, a, b, c);
  std::fesetround(rounding);
  size_t wrong = 0;
  D host{};
  size_t at = 0;
  for (size_t i = 0; i < kCount && wrong == 0; ++i) {
    volatile A x = a[i], y = b[i], z = c[i];
    volatile D value = expected(x, y, z);
    if (!SameBits<D>(d[i], value)) ++wrong, host = value, at = i;
  }
  std::fesetround(FE_TONEAREST);
  ASSERT_EQ(wrong, 0u) << body << " of " << a[at] << ", " << b[at] << ", " << c[at] << " gives "
                       << d[at] << ", host " << host;
}

const std::pair<const char*, int> kModes[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

template <class T>
void CheckArithmetic(const std::string& t) {
  using F = std::function<T(T, T, T)>;
  for (const auto& [name, mode] : kModes) {
    std::string m = "." + std::string(name) + "." + t + " ";
    Check<T, T>("add" + m + "%d, %a, %b;", mode, F([](T a, T b, T) { return a + b; }));
    Check<T, T>("sub" + m + "%d, %a, %b;", mode, F([](T a, T b, T) { return a - b; }));
    Check<T, T>("mul" + m + "%d, %a, %b;", mode, F([](T a, T b, T) { return a * b; }));
    Check<T, T>("div" + m + "%d, %a, %b;", mode, F([](T a, T b, T) { return a / b; }));
    Check<T, T>("fma" + m + "%d, %a, %b, %c;", mode,
                F([](T a, T b, T c) { return std::fma(a, b, c); }));
    Check<T, T>("sqrt" + m + "%d, %a;", mode, F([](T a, T, T) { return std::sqrt(a); }));
    Check<T, T>("rcp" + m + "%d, %a;", mode, F([](T a, T, T) { return T(1) / a; }));
  }
}
TEST_P(Floating, SinglePrecisionIsExactInEveryRoundingMode) { CheckArithmetic<float>("f32"); }
TEST_P(Floating, DoublePrecisionIsExactInEveryRoundingMode) { CheckArithmetic<double>("f64"); }

TEST_P(Floating, MinimumMaximumAndSigns) {
  using F = std::function<float(float, float, float)>;
  auto larger = [](float a, float b) {
    if (a == 0 && b == 0) return std::signbit(a) ? b : a;
    if (std::isnan(a) || std::isnan(b))
      return std::isnan(a) ? b : a;  // fmax does not do this for signalling NaN
    return std::max(a, b);
  };
  Check<float, float>("max.f32 %d, %a, %b;", FE_TONEAREST,
                      F([=](float a, float b, float) { return larger(a, b); }));
  Check<float, float>("min.f32 %d, %a, %b;", FE_TONEAREST,
                      F([=](float a, float b, float) { return -larger(-a, -b); }));
  Check<float, float>("abs.f32 %d, %a;", FE_TONEAREST,
                      F([](float a, float, float) { return std::fabs(a); }));
  Check<float, float>("neg.f32 %d, %a;", FE_TONEAREST, F([](float a, float, float) { return -a; }));
  Check<float, float>("copysign.f32 %d, %a, %b;", FE_TONEAREST,
                      F([](float a, float b, float) { return std::copysign(b, a); }));
}

TEST_P(Floating, FlushToZeroTreatsSubnormalsAsZero) {
  auto flush = [](float v) {
    return std::fpclassify(v) == FP_SUBNORMAL ? std::copysign(0.0f, v) : v;
  };
  using F = std::function<float(float, float, float)>;
  Check<float, float>("mul.ftz.f32 %d, %a, %b;", FE_TONEAREST,
                      F([=](float a, float b, float) { return flush(flush(a) * flush(b)); }));
  Check<float, float>(
      "fma.rn.ftz.f32 %d, %a, %b, %c;", FE_TONEAREST,
      F([=](float a, float b, float c) { return flush(std::fma(flush(a), flush(b), flush(c))); }));
  Check<float, float>("add.sat.f32 %d, %a, %b;", FE_TONEAREST, F([](float a, float b, float) {
                        float s = a + b;
                        return s > 1 ? 1.0f : s > 0 ? s : 0.0f;
                      }));
}

template <class T>
void CheckComparisons(const std::string& t) {
  const std::pair<const char*, std::function<bool(T, T)>> rows[] = {
      {"eq", [](T a, T b) { return a == b; }},
      {"ne", [](T a, T b) { return a < b || a > b; }},
      {"lt", [](T a, T b) { return a < b; }},
      {"le", [](T a, T b) { return a <= b; }},
      {"gt", [](T a, T b) { return a > b; }},
      {"ge", [](T a, T b) { return a >= b; }},
      {"equ", [](T a, T b) { return !(a < b || a > b); }},
      {"neu", [](T a, T b) { return a != b; }},
      {"ltu", [](T a, T b) { return !(a >= b); }},
      {"leu", [](T a, T b) { return !(a > b); }},
      {"gtu", [](T a, T b) { return !(a <= b); }},
      {"geu", [](T a, T b) { return !(a < b); }},
      {"num", [](T a, T b) { return !std::isnan(a) && !std::isnan(b); }},
      {"nan", [](T a, T b) { return std::isnan(a) || std::isnan(b); }}};
  for (const auto& [name, compare] : rows) {
    Check<float, T>("setp." + std::string(name) + "." + t +
                        " %p0, %a, %b; selp.f32 %d, 0f3f800000, 0f00000000, %p0;",
                    FE_TONEAREST, std::function<float(T, T, T)>([=](T a, T b, T) {
                      return compare(a, b) ? 1.0f : 0.0f;
                    }));
  }
}
TEST_P(Floating, ComparisonsKnowNaN) {
  CheckComparisons<float>("f32");
  CheckComparisons<double>("f64");
}

TEST_P(Floating, ConversionsBetweenFloatTypes) {
  for (const auto& [name, mode] : kModes) {
    Check<float, double>("cvt." + std::string(name) + ".f32.f64 %d, %a;", mode,
                         std::function<float(double, double, double)>(
                             [](double a, double, double) { return static_cast<float>(a); }));
  }
  Check<double, float>("cvt.f64.f32 %d, %a;", FE_TONEAREST,
                       std::function<double(float, float, float)>(
                           [](float a, float, float) { return static_cast<double>(a); }));
  const std::pair<const char*, int> integral[] = {
      {"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};
  for (const auto& [name, mode] : integral) {
    Check<float, float>("cvt." + std::string(name) + ".f32.f32 %d, %a;", mode,
                        std::function<float(float, float, float)>(
                            [](float a, float, float) { return std::nearbyint(a); }));
    Check<double, double>("cvt." + std::string(name) + ".f64.f64 %d, %a;", mode,
                          std::function<double(double, double, double)>(
                              [](double a, double, double) { return std::nearbyint(a); }));
  }
}

template <class I, class T>
void CheckToInteger(const std::string& i, const std::string& t) {
  const std::pair<const char*, int> integral[] = {
      {"rni", FE_TONEAREST}, {"rzi", FE_TOWARDZERO}, {"rmi", FE_DOWNWARD}, {"rpi", FE_UPWARD}};
  std::vector<T> a = FloatOperands<T>(kCount, 5);
  for (const auto& [name, mode] : integral) {
    std::string body = "cvt." + std::string(name) + "." + i + "." + t + " %d, %a;";
    std::vector<I> d = RunOp<I, T, T, T>(body, a, a, a);
    for (size_t k = 0; k < kCount; ++k) {
      std::fesetround(mode);
      volatile T rounded = std::nearbyint(a[k]);
      std::fesetround(FE_TONEAREST);
      I expected;
      if (std::isnan(a[k])) {
        expected = sizeof(T) == 8 || sizeof(I) == 8
                       ? static_cast<I>(uint64_t{1} << (8 * sizeof(I) - 1))
                       : I(0);
      } else if (rounded >= std::ldexp(T(1), 8 * sizeof(I) - std::is_signed_v<I>)) {
        expected = std::numeric_limits<I>::max();
      } else if (rounded < static_cast<T>(std::numeric_limits<I>::min())) {
        expected = std::numeric_limits<I>::min();
      } else {
        expected = static_cast<I>(rounded);
      }
      ASSERT_EQ(d[k], expected) << body << " of " << a[k];
    }
  }
}
TEST_P(Floating, ConversionsToIntegersSaturate) {
  CheckToInteger<int32_t, float>("s32", "f32");
  CheckToInteger<uint32_t, float>("u32", "f32");
  CheckToInteger<int64_t, float>("s64", "f32");
  CheckToInteger<uint64_t, float>("u64", "f32");
  CheckToInteger<int16_t, float>("s16", "f32");
  CheckToInteger<int32_t, double>("s32", "f64");
  CheckToInteger<uint32_t, double>("u32", "f64");
  CheckToInteger<int64_t, double>("s64", "f64");
  CheckToInteger<uint64_t, double>("u64", "f64");
}

template <class T, class I>
void CheckFromInteger(const std::string& t, const std::string& i) {
  std::vector<I> a = Operands<I>(kCount, 6);
  for (const auto& [name, mode] : kModes) {
    std::string body = "cvt." + std::string(name) + "." + t + "." + i + " %d, %a;";
    std::vector<T> d = RunOp<T, I, I, I>(body, a, a, a);
    for (size_t k = 0; k < kCount; ++k) {
      std::fesetround(mode);
      volatile I source = a[k];
      // The compiler's own conversion of u64 rounds twice in directed modes; the x87 type holds
      // every 64-bit integer.
      volatile long double exact = source;
      volatile T expected = static_cast<T>(exact);
      std::fesetround(FE_TONEAREST);
      T value = expected;
      ASSERT_TRUE(SameBits<T>(d[k], value))
          << body << " of " << +a[k] << " gives " << d[k] << ", host " << value;
    }
  }
}
TEST_P(Floating, ConversionsFromIntegersRound) {
  CheckFromInteger<float, int32_t>("f32", "s32");
  CheckFromInteger<float, uint32_t>("f32", "u32");
  CheckFromInteger<float, int64_t>("f32", "s64");
  CheckFromInteger<float, uint64_t>("f32", "u64");
  CheckFromInteger<double, int64_t>("f64", "s64");
  CheckFromInteger<double, uint64_t>("f64", "u64");
  CheckFromInteger<double, int32_t>("f64", "s32");
}

// Error in units of the last place of the exact result.
double Ulps(float value, double exact) {
  if (std::isnan(exact)) return std::isnan(value) ? 0 : 1e9;
  if (std::isinf(static_cast<float>(exact))) return value == static_cast<float>(exact) ? 0 : 1e9;
  int exponent;
  std::frexp(exact, &exponent);
  double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(value - exact) / ulp;
}
void CheckApprox(const std::string& op, std::function<double(double)> exact, double bound,
                 std::function<float(float)> domain) {
  std::vector<float> a = FloatOperands<float>(kCount, 7);
  for (float& v : a) v = domain(v);
  std::vector<float> d = RunOp<float, float, float, float>(op + " %d, %a;", a, a, a);
  for (size_t k = 0; k < kCount; ++k) {
    ASSERT_LE(Ulps(d[k], exact(a[k])), bound)
        << op << " of " << a[k] << " gives " << d[k] << ", exact " << exact(a[k]);
  }
}
TEST_P(Floating, ApproximationsAreWithinOneUlp) {
  auto any = [](float v) { return v; };
  CheckApprox(
      "ex2.approx.f32", [](double v) { return std::exp2(v); }, 1, any);
  CheckApprox(
      "lg2.approx.f32", [](double v) { return std::log2(v); }, 1, any);
  CheckApprox(
      "rsqrt.approx.f32", [](double v) { return 1 / std::sqrt(v); }, 1, any);
  CheckApprox(
      "rcp.approx.f32", [](double v) { return 1 / v; }, 1, any);
  CheckApprox(
      "sqrt.approx.f32", [](double v) { return std::sqrt(v); }, 1, any);
  CheckApprox(
      "tanh.approx.f32", [](double v) { return std::tanh(v); }, 1, any);
  auto moderate = [](float v) { return std::isfinite(v) ? std::fmod(v, 1000.0f) : v; };
  CheckApprox(
      "sin.approx.f32", [](double v) { return std::sin(v); }, 1, moderate);
  CheckApprox(
      "cos.approx.f32", [](double v) { return std::cos(v); }, 1, moderate);
}

// All builds give the same bits: what each of them computes is compared with the first.
TEST(FloatingVariants, AgreeToTheBitOnEverything) {
  const char* bodies[] = {"ex2.approx.ftz.f32 %d, %a;",
                          "lg2.approx.f32 %d, %a;",
                          "sin.approx.f32 %d, %a;",
                          "tanh.approx.f32 %d, %a;",
                          "fma.rn.f32 %d, %a, %b, %c;",
                          "fma.rm.f32 %d, %a, %b, %c;",
                          "div.full.f32 %d, %a, %b;",
                          "mul.f32 %d, %a, %b;",
                          "max.f32 %d, %a, %b;",
                          "cvt.rni.f32.f32 %d, %a;",
                          "sub.rz.f32 %d, %a, %c;",
                          "rsqrt.approx.f32 %d, %a;",
                          "cvt.rn.f16.f32 %h0, %a; cvt.f32.f16 %d, %h0;",
                          "add.sat.f32 %d, %a, %b;"};
  std::vector<float> a = FloatOperands<float>(kCount, 8), b = FloatOperands<float>(kCount, 9),
                     c = FloatOperands<float>(kCount, 10);
  for (const char* body : bodies) {
    std::vector<uint32_t> first;
    for (const exec::Variant* variant : exec::UsableVariants()) {
      exec::SelectVariant(variant->name);
      std::vector<float> d = RunOp<float, float, float, float>(body, a, b, c);
      std::vector<uint32_t> bits(kCount);
      std::memcpy(bits.data(), d.data(), 4 * kCount);
      if (first.empty()) first = bits;
      EXPECT_EQ(bits, first) << variant->name << ": " << body;
    }
  }
}

}  // namespace
}  // namespace atp::sim
