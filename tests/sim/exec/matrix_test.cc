// SPDX-License-Identifier: Apache-2.0
// Matrix instructions, half types, asynchronous copies and barrier objects, against CPU references.
#include <cmath>
#include <random>

#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

// Reference conversions through double, written independently of the handlers.
double HalfValue(uint16_t h) {
  int exponent = h >> 10 & 31, mantissa = h & 1023;
  double v = exponent == 0    ? std::ldexp(mantissa, -24)
             : exponent == 31 ? (mantissa ? NAN : INFINITY)
                              : std::ldexp(1024 + mantissa, exponent - 25);
  return h & 0x8000 ? -v : v;
}
double Bf16Value(uint16_t h) {
  uint32_t bits = static_cast<uint32_t>(h) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
// Rounds to a format with `precision` bits, the smallest exponent `lowest` (of the last subnormal
// bit) and the largest value `largest`.
double RoundTo(double v, int precision, int lowest, double largest) {
  if (v == 0 || !std::isfinite(v)) return v;
  int exponent;
  std::frexp(v, &exponent);
  int last = std::max(exponent - precision, lowest);
  double r = std::ldexp(std::nearbyint(std::ldexp(v, -last)), last);
  return std::fabs(r) > largest ? std::copysign(INFINITY, v) : r;
}
double ToHalf(double v) { return RoundTo(v, 11, -24, 65504); }
double ToBf16(double v) { return RoundTo(v, 8, -133, 3.3895313892515355e38); }

class Matrix : public EachVariant {
 protected:
  void SetUp() override {
    EachVariant::SetUp();
    module_ = MustLoad(ReadText(std::string(ATP_PTX_DIR) + "/matrix.ptx"));
    ASSERT_NE(module_, nullptr);
    BindGlobals(module_.get(), &memory_);
  }
  void MustRun(const std::string& kernel, const LaunchConfig& config, const Params& params) {
    ExecResult result = module_->Execute(kernel, config, params.bytes, memory_, nullptr);
    ASSERT_EQ(result.status, ExecStatus::kOk) << result.message;
  }
  // Halves that are multiples of 1/8, so that sums of products are exact whatever their order.
  static std::vector<uint16_t> SmallHalves(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<uint16_t> values(n);
    for (uint16_t& v : values)
      v = static_cast<uint16_t>((random() & 0x8000) | (13 + random() % 4) << 10 |
                                (random() & 0x3c0));
    return values;
  }
  static std::vector<int8_t> Bytes(size_t n, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<int8_t> values(n);
    for (int8_t& v : values) v = static_cast<int8_t>(random());
    return values;
  }
  TestMemory memory_;
  std::unique_ptr<Module> module_;
};
ATP_FOR_EACH_VARIANT(Matrix);

TEST_P(Matrix, WmmaMultipliesHalves) {
  std::vector<uint16_t> a = SmallHalves(256, 1), b = SmallHalves(256, 2);
  std::vector<float> c(256);
  for (int i = 0; i < 256; ++i) c[i] = static_cast<float>(i);
  uint64_t out = memory_.Put(c);
  MustRun("WmmaHalf", Grid(1, 32), Params(memory_.Put(a), memory_.Put(b), out));
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 16; ++n) {
      double sum = c[r * 16 + n];
      for (int k = 0; k < 16; ++k) sum += HalfValue(a[r * 16 + k]) * HalfValue(b[n * 16 + k]);
      ASSERT_EQ(memory_.As<float>(out)[r * 16 + n], 2 * sum);
    }
  }
}

TEST_P(Matrix, WmmaMultipliesBytesOfOtherShapes) {
  std::vector<int8_t> a = Bytes(512, 3), b = Bytes(128, 4);
  uint64_t out = memory_.Put(std::vector<int>(256));
  MustRun("WmmaBytes", Grid(1, 32), Params(memory_.Put(a), memory_.Put(b), out));
  for (int r = 0; r < 32; ++r) {
    for (int n = 0; n < 8; ++n) {
      int sum = 3;
      for (int k = 0; k < 16; ++k) sum += a[r * 16 + k] * b[k * 8 + n];
      ASSERT_EQ(memory_.As<int>(out)[n * 32 + r], sum);
    }
  }
}

TEST_P(Matrix, MmaWithLdmatrix) {
  std::vector<uint16_t> a = SmallHalves(256, 5), b = SmallHalves(128, 6);
  std::vector<float> c(128, 1.5f);
  uint64_t out = memory_.Put(c);
  MustRun("MmaHalf", Grid(1, 32), Params(memory_.Put(a), memory_.Put(b), out));
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 8; ++n) {
      double sum = 1.5;
      for (int k = 0; k < 16; ++k) sum += HalfValue(a[r * 16 + k]) * HalfValue(b[n * 16 + k]);
      ASSERT_EQ(memory_.As<float>(out)[r * 8 + n], sum);
    }
  }
}

TEST_P(Matrix, MmaOfBytesTf32AndDoubles) {
  std::vector<int8_t> a = Bytes(512, 7), b = Bytes(256, 8);
  uint64_t out = memory_.Put(std::vector<int>(128));
  MustRun("MmaBytes", Grid(1, 32), Params(memory_.Put(a), memory_.Put(b), out));
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 8; ++n) {
      int sum = 0;
      for (int k = 0; k < 32; ++k) sum += a[r * 32 + k] * b[n * 32 + k];
      ASSERT_EQ(memory_.As<int>(out)[r * 8 + n], sum);
    }
  }
  std::vector<float> x(128), y(64);
  for (int i = 0; i < 128; ++i) x[i] = static_cast<float>(i % 13) * 0.25f;
  for (int i = 0; i < 64; ++i) y[i] = static_cast<float>(i % 7) - 3.0f;
  uint64_t floats = memory_.Put(std::vector<float>(128));
  MustRun("MmaTf32", Grid(1, 32), Params(memory_.Put(x), memory_.Put(y), floats));
  for (int r = 0; r < 16; ++r) {
    for (int n = 0; n < 8; ++n) {
      float sum = 0;
      for (int k = 0; k < 8; ++k) sum += x[r * 8 + k] * y[n * 8 + k];
      ASSERT_EQ(memory_.As<float>(floats)[r * 8 + n], sum);
    }
  }
  std::vector<double> u(32), v(32);
  for (int i = 0; i < 32; ++i) u[i] = i + 0.5, v[i] = 3 - i;
  uint64_t doubles = memory_.Put(std::vector<double>(64));
  MustRun("MmaDouble", Grid(1, 32), Params(memory_.Put(u), memory_.Put(v), doubles));
  for (int r = 0; r < 8; ++r) {
    for (int n = 0; n < 8; ++n) {
      double sum = 0;
      for (int k = 0; k < 4; ++k) sum += u[r * 4 + k] * v[n * 4 + k];
      ASSERT_EQ(memory_.As<double>(doubles)[r * 8 + n], sum);
    }
  }
}

bool SameValue(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

TEST_P(Matrix, HalfArithmeticRoundsOnce) {
  constexpr int kN = 4096;
  std::mt19937 random(9);
  std::vector<uint16_t> x(kN), y(kN), u(kN), v(kN);
  for (auto* list : {&x, &y, &u, &v}) {
    for (uint16_t& h : *list) h = static_cast<uint16_t>(random());
  }
  for (int i = 0; i < kN; i += 2)
    y[i] = static_cast<uint16_t>((x[i] & 0x7c00) ^ (y[i] & 0x87ff));  // near exponents
  uint64_t out = memory_.Put(std::vector<uint16_t>(8 * kN)),
           bout = memory_.Put(std::vector<uint16_t>(4 * kN));
  MustRun("HalfArithmetic", Grid(kN / 128, 128),
          Params(memory_.Put(x), memory_.Put(y), out, memory_.Put(u), memory_.Put(v), bout));
  for (int i = 0; i < kN; ++i) {
    const uint16_t* o = memory_.As<uint16_t>(out) + 8 * i;
    double a = HalfValue(x[i]), b = HalfValue(y[i]);
    // Sums of a product of halves and a half fit into 64 bits of the x87 type's mantissa, or differ
    // so much that the rest is sticky.
    long double fused = static_cast<long double>(a) * b + a,
                swapped = static_cast<long double>(b) * b + a;
    double expected[] = {ToHalf(a + b), ToHalf(a * b), ToHalf(static_cast<double>(fused))};
    for (int k = 0; k < 3; ++k)
      ASSERT_TRUE(SameValue(HalfValue(o[k]), expected[k]))
          << k << ": " << a << ", " << b << " gives " << HalfValue(o[k]) << " not " << expected[k];
    double larger = std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
    ASSERT_TRUE(SameValue(HalfValue(o[3]), larger));
    ASSERT_TRUE(SameValue(HalfValue(o[4]), -a));
    ASSERT_TRUE(SameValue(HalfValue(o[5]), expected[2]));
    ASSERT_TRUE(SameValue(HalfValue(o[6]), ToHalf(static_cast<double>(swapped))));
    ASSERT_TRUE(
        SameValue(HalfValue(o[7]), ToHalf(static_cast<double>(static_cast<float>(a) * 1.001f))));
    const uint16_t* w = memory_.As<uint16_t>(bout) + 4 * i;
    double p = Bf16Value(u[i]), q = Bf16Value(v[i]);
    ASSERT_TRUE(SameValue(Bf16Value(w[0]), ToBf16(p + q))) << p << " + " << q;
    ASSERT_TRUE(SameValue(Bf16Value(w[1]), ToBf16(p * q))) << p << " * " << q;
    ASSERT_TRUE(
        SameValue(Bf16Value(w[3]), ToBf16(static_cast<double>(static_cast<float>(p) * 1.001f))));
  }
}

TEST_P(Matrix, AsynchronousCopiesArrive) {
  std::vector<float> in(256);
  for (int i = 0; i < 256; ++i) in[i] = static_cast<float>(i);
  uint64_t out = memory_.Put(std::vector<float>(256));
  MustRun("AsyncCopies", Grid(1, 64), Params(memory_.Put(in), out));
  for (int i = 0; i < 256; ++i)
    EXPECT_EQ(memory_.As<float>(out)[i], static_cast<float>((63 - i / 4) * 4 + i % 4));
}

TEST_P(Matrix, BarrierObjectsSeparatePhases) {
  uint64_t out = memory_.Put(std::vector<int>(64));
  MustRun("BarrierObject", Grid(1, 64), Params(out, 5));
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory_.As<int>(out)[i], (i + 5) % 64 + 5);
}

}  // namespace
}  // namespace atp::sim
