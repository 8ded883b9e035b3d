// SPDX-License-Identifier: Apache-2.0
// Integer operations of every width with random operands, against the host's arithmetic.
#include <functional>
#include <limits>

#include "tests/sim/exec/one_op.h"

namespace atp::sim {
namespace {

constexpr size_t kCount = 1024;

class Integer : public EachVariant {};
ATP_FOR_EACH_VARIANT(Integer);

template <class D, class A, class B, class C>
void Check(const std::string& body, std::function<D(A, B, C)> expected, unsigned seed = 1) {
  std::vector<A> a = Operands<A>(kCount, seed);
  std::vector<B> b = Operands<B>(kCount, seed + 100);
  std::vector<C> c = Operands<C>(kCount, seed + 200);
  std::vector<D> d = RunOp<D, A, B, C>(body, a, b, c);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(d[i], expected(a[i], b[i], c[i]))
        << body << " of " << +a[i] << ", " << +b[i] << ", " << +c[i];
  }
}

template <class T>
using Wide = __int128;

template <class T>
void CheckType(const std::string& t) {
  using F = std::function<T(T, T, T)>;
  using U = std::make_unsigned_t<T>;
  constexpr int kBits = 8 * sizeof(T);
  auto wrap = [](__int128 v) { return static_cast<T>(static_cast<unsigned __int128>(v)); };
  auto signed_min = [](T a, T b) {
    return std::is_signed_v<T> && a == std::numeric_limits<T>::min() && b == T(-1);
  };
  Check<T, T, T, T>("add." + t + " %d, %a, %b;",
                    F([=](T a, T b, T) { return wrap(__int128(a) + b); }));
  Check<T, T, T, T>("sub." + t + " %d, %a, %b;",
                    F([=](T a, T b, T) { return wrap(__int128(a) - b); }));
  Check<T, T, T, T>("mul.lo." + t + " %d, %a, %b;", F([=](T a, T b, T) {
                      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
                    }));
  Check<T, T, T, T>(
      "mul.hi." + t + " %d, %a, %b;", F([=](T a, T b, T) {
        if (std::is_signed_v<T>) return static_cast<T>((__int128(a) * b) >> kBits);
        return static_cast<T>(
            (static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)) >> kBits);
      }));
  Check<T, T, T, T>("mad.lo." + t + " %d, %a, %b, %c;", F([=](T a, T b, T c) {
                      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b) +
                                            static_cast<uint64_t>(c));
                    }));
  Check<T, T, T, T>(
      "div." + t + " %d, %a, %b;", F([=](T a, T b, T) {
        return b == 0 ? static_cast<T>(-1) : signed_min(a, b) ? a : static_cast<T>(a / b);
      }));
  Check<T, T, T, T>("rem." + t + " %d, %a, %b;", F([=](T a, T b, T) {
                      return b == 0 ? a : signed_min(a, b) ? T(0) : static_cast<T>(a % b);
                    }));
  Check<T, T, T, T>("min." + t + " %d, %a, %b;", F([](T a, T b, T) { return std::min(a, b); }));
  Check<T, T, T, T>("max." + t + " %d, %a, %b;", F([](T a, T b, T) { return std::max(a, b); }));
  Check<T, T, T, T>("sad." + t + " %d, %a, %b, %c;", F([=](T a, T b, T c) {
                      return wrap(__int128(c) + (a > b ? __int128(a) - b : __int128(b) - a));
                    }));
  Check<T, T, uint32_t, T>(
      "shr." + t + " %d, %a, %b;", std::function<T(T, uint32_t, T)>([=](T a, uint32_t n, T) {
        return static_cast<T>(n >= unsigned(kBits) ? (std::is_signed_v<T> && a < 0 ? -1 : 0)
                                                   : a >> n);
      }));
  const std::pair<const char*, std::function<bool(T, T)>> comparisons[] = {
      {"eq", [](T a, T b) { return a == b; }}, {"ne", [](T a, T b) { return a != b; }},
      {"lt", [](T a, T b) { return a < b; }},  {"le", [](T a, T b) { return a <= b; }},
      {"gt", [](T a, T b) { return a > b; }},  {"ge", [](T a, T b) { return a >= b; }}};
  for (const auto& [name, compare] : comparisons) {
    Check<uint32_t, T, T, T>(
        "setp." + std::string(name) + "." + t + " %p0, %a, %b; selp.b32 %d, 7, 9, %p0;",
        std::function<uint32_t(T, T, T)>([=](T a, T b, T) { return compare(a, b) ? 7u : 9u; }));
    Check<uint32_t, T, T, T>(
        "set." + std::string(name) + ".u32." + t + " %d, %a, %b;",
        std::function<uint32_t(T, T, T)>([=](T a, T b, T) { return compare(a, b) ? ~0u : 0u; }));
  }
  if constexpr (std::is_signed_v<T>) {
    Check<T, T, T, T>("neg." + t + " %d, %a;", F([=](T a, T, T) { return wrap(-__int128(a)); }));
    Check<T, T, T, T>("abs." + t + " %d, %a;",
                      F([=](T a, T, T) { return wrap(a < 0 ? -__int128(a) : __int128(a)); }));
  } else {
    std::string b = ".b" + std::to_string(kBits) + " ";
    Check<U, U, U, U>("and" + b + "%d, %a, %b;",
                      std::function<U(U, U, U)>([](U x, U y, U) { return static_cast<U>(x & y); }));
    Check<U, U, U, U>("or" + b + "%d, %a, %b;",
                      std::function<U(U, U, U)>([](U x, U y, U) { return static_cast<U>(x | y); }));
    Check<U, U, U, U>("xor" + b + "%d, %a, %b;",
                      std::function<U(U, U, U)>([](U x, U y, U) { return static_cast<U>(x ^ y); }));
    Check<U, U, U, U>("not" + b + "%d, %a;",
                      std::function<U(U, U, U)>([](U x, U, U) { return static_cast<U>(~x); }));
    Check<U, U, U, U>("cnot" + b + "%d, %a;",
                      std::function<U(U, U, U)>([](U x, U, U) { return static_cast<U>(x == 0); }));
    Check<U, U, uint32_t, U>("shl" + b + "%d, %a, %b;",
                             std::function<U(U, uint32_t, U)>([](U x, uint32_t n, U) {
                               return static_cast<U>(n >= kBits ? 0 : x << n);
                             }));
  }
}

TEST_P(Integer, Signed16) { CheckType<int16_t>("s16"); }
TEST_P(Integer, Unsigned16) { CheckType<uint16_t>("u16"); }
TEST_P(Integer, Signed32) { CheckType<int32_t>("s32"); }
TEST_P(Integer, Unsigned32) { CheckType<uint32_t>("u32"); }
TEST_P(Integer, Signed64) { CheckType<int64_t>("s64"); }
TEST_P(Integer, Unsigned64) { CheckType<uint64_t>("u64"); }

TEST_P(Integer, WideProducts) {
  Check<int64_t, int32_t, int32_t, int64_t>(
      "mul.wide.s32 %d, %a, %b;",
      std::function<int64_t(int32_t, int32_t, int64_t)>(
          [](int32_t a, int32_t b, int64_t) { return int64_t{a} * b; }));
  Check<uint64_t, uint32_t, uint32_t, uint64_t>(
      "mad.wide.u32 %d, %a, %b, %c;",
      std::function<uint64_t(uint32_t, uint32_t, uint64_t)>(
          [](uint32_t a, uint32_t b, uint64_t c) { return uint64_t{a} * b + c; }));
  Check<int32_t, int16_t, int16_t, int32_t>(
      "mul.wide.s16 %d, %a, %b;", std::function<int32_t(int16_t, int16_t, int32_t)>(
                                      [](int16_t a, int16_t b, int32_t) { return a * b; }));
  Check<uint32_t, uint16_t, uint16_t, uint32_t>(
      "mul.wide.u16 %d, %a, %b;",
      std::function<uint32_t(uint16_t, uint16_t, uint32_t)>(
          [](uint16_t a, uint16_t b, uint32_t) { return uint32_t{a} * b; }));
}

TEST_P(Integer, CarryChainsMake128BitSumsAndProducts) {
  using U = uint64_t;
  auto sum = std::function<U(U, U, U)>([](U a, U b, U c) {
    unsigned __int128 x = static_cast<unsigned __int128>(a) << 64 | b,
                      y = static_cast<unsigned __int128>(c) << 64 | a;
    return static_cast<U>((x + y) >> 64);
  });
  Check<U, U, U, U>("add.cc.u64 %l0, %b, %a; addc.u64 %d, %a, %c;", sum);
  auto difference = std::function<U(U, U, U)>([](U a, U b, U c) {
    unsigned __int128 x = static_cast<unsigned __int128>(a) << 64 | b,
                      y = static_cast<unsigned __int128>(c) << 64 | a;
    return static_cast<U>((x - y) >> 64);
  });
  Check<U, U, U, U>("sub.cc.u64 %l0, %b, %a; subc.u64 %d, %a, %c;", difference);
  auto product = std::function<U(U, U, U)>(
      [](U a, U b, U) { return static_cast<U>((static_cast<unsigned __int128>(a) * b) >> 64); });
  Check<U, U, U, U>(
      "mov.b64 {%x0, %x1}, %a; mov.b64 {%x2, %x3}, %b;\n"
      "mul.hi.u32 %x4, %x0, %x2;\n"
      "mad.lo.cc.u32 %x4, %x1, %x2, %x4; madc.hi.u32 %x5, %x1, %x2, 0;\n"
      "mad.lo.cc.u32 %x4, %x0, %x3, %x4; madc.hi.cc.u32 %x5, %x0, %x3, %x5; addc.u32 %x6, 0, 0;\n"
      "mad.lo.cc.u32 %x5, %x1, %x3, %x5; madc.hi.u32 %x6, %x1, %x3, %x6;\n"
      "mov.b64 %d, {%x5, %x6};",
      product);
}

TEST_P(Integer, BitOperations) {
  using U = uint32_t;
  using F = std::function<U(U, U, U)>;
  Check<U, U, U, U>("popc.b32 %d, %a;",
                    F([](U a, U, U) { return static_cast<U>(__builtin_popcount(a)); }));
  Check<U, U, U, U>("clz.b32 %d, %a;",
                    F([](U a, U, U) { return a ? static_cast<U>(__builtin_clz(a)) : 32u; }));
  Check<U, uint64_t, U, U>("clz.b64 %d, %a;",
                           std::function<U(uint64_t, U, U)>([](uint64_t a, U, U) {
                             return a ? static_cast<U>(__builtin_clzll(a)) : 64u;
                           }));
  Check<U, U, U, U>("bfind.u32 %d, %a;",
                    F([](U a, U, U) { return a ? 31u - static_cast<U>(__builtin_clz(a)) : ~0u; }));
  Check<U, U, U, U>("bfind.shiftamt.s32 %d, %a;", F([](U a, U, U) {
                      U v = a >> 31 ? ~a : a;
                      return v ? static_cast<U>(__builtin_clz(v)) : ~0u;
                    }));
  Check<U, U, U, U>("shf.l.wrap.b32 %d, %a, %b, %c;", F([](U a, U b, U c) {
                      return static_cast<U>((uint64_t{b} << 32 | a) << (c & 31) >> 32);
                    }));
  Check<U, U, U, U>("shf.r.clamp.b32 %d, %a, %b, %c;", F([](U a, U b, U c) {
                      return static_cast<U>((uint64_t{b} << 32 | a) >> std::min(c, 32u));
                    }));
  Check<U, U, U, U>("lop3.b32 %d, %a, %b, %c, 0xca;",
                    F([](U a, U b, U c) { return (a & b) | (~a & c); }));
  Check<U, U, U, U>("lop3.b32 %d, %a, %b, %c, 0x96;", F([](U a, U b, U c) { return a ^ b ^ c; }));
  auto field = [](U x, U position, U length,
                  bool is_signed) {  // bit by bit, as the manual's pseudo-code
    position &= 255, length &= 255;
    U sign = !is_signed || length == 0 ? 0 : x >> std::min(position + length - 1, 31u) & 1, d = 0;
    for (U k = 0; k < 32; ++k)
      d |= (k < length && position + k < 32 ? x >> (position + k) & 1 : sign) << k;
    return d;
  };
  Check<U, U, U, U>("bfe.u32 %d, %a, %b, %c;",
                    F([=](U a, U b, U c) { return field(a, b, c, false); }));
  Check<U, U, U, U>("bfe.s32 %d, %a, %b, %c;",
                    F([=](U a, U b, U c) { return field(a, b, c, true); }));
  Check<U, U, U, U>("and.b32 %x0, %c, 31; and.b32 %x1, %c, 15; bfi.b32 %d, %a, %b, %x0, %x1;",
                    F([](U a, U b, U c) {
                      U position = c & 31, length = c & 15, d = b;
                      for (U k = 0; k < length && position + k < 32; ++k)
                        d = (d & ~(1u << (position + k))) | (a >> k & 1) << (position + k);
                      return d;
                    }));
  Check<U, U, U, U>("prmt.b32 %d, %a, %b, %c;", F([](U a, U b, U c) {
                      uint64_t both = uint64_t{b} << 32 | a;
                      U d = 0;
                      for (int k = 0; k < 4; ++k) {
                        U s = c >> (4 * k) & 15, byte = static_cast<U>(both >> (8 * (s & 7)) & 255);
                        d |= (s & 8 ? (byte >> 7) * 255 : byte) << (8 * k);
                      }
                      return d;
                    }));
  Check<int32_t, int32_t, int32_t, int32_t>(
      "add.sat.s32 %d, %a, %b;",
      std::function<int32_t(int32_t, int32_t, int32_t)>([](int32_t a, int32_t b, int32_t) {
        return static_cast<int32_t>(std::clamp<int64_t>(int64_t{a} + b, INT32_MIN, INT32_MAX));
      }));
  Check<int32_t, U, U, int32_t>(
      "dp2a.lo.s32.u32 %d, %a, %b, %c;",
      std::function<int32_t(U, U, int32_t)>([](U a, U b, int32_t c) {
        U sum = static_cast<U>(c);
        for (int k = 0; k < 2; ++k)
          sum += static_cast<U>(static_cast<int16_t>(a >> (16 * k)) *
                                static_cast<int>(static_cast<uint8_t>(b >> (8 * k))));
        return static_cast<int32_t>(sum);
      }));
}

TEST_P(Integer, ConversionsBetweenWidthsExtendAndSaturate) {
  Check<int32_t, int32_t, int32_t, int32_t>(
      "cvt.s8.s32 %d, %a;",
      std::function<int32_t(int32_t, int32_t, int32_t)>(
          [](int32_t a, int32_t, int32_t) { return static_cast<int8_t>(a); }));
  Check<int64_t, int32_t, int32_t, int32_t>(
      "cvt.s64.s32 %d, %a;", std::function<int64_t(int32_t, int32_t, int32_t)>(
                                 [](int32_t a, int32_t, int32_t) { return int64_t{a}; }));
  Check<int64_t, int32_t, int32_t, int32_t>(
      "cvt.s64.s8 %d, %a;",
      std::function<int64_t(int32_t, int32_t, int32_t)>(
          [](int32_t a, int32_t, int32_t) { return int64_t{static_cast<int8_t>(a)}; }));
  Check<int32_t, int64_t, int32_t, int32_t>(
      "cvt.sat.s32.s64 %d, %a;",
      std::function<int32_t(int64_t, int32_t, int32_t)>([](int64_t a, int32_t, int32_t) {
        return static_cast<int32_t>(std::clamp<int64_t>(a, INT32_MIN, INT32_MAX));
      }));
  Check<uint32_t, int32_t, int32_t, int32_t>(
      "cvt.sat.u8.s32 %d, %a;",
      std::function<uint32_t(int32_t, int32_t, int32_t)>([](int32_t a, int32_t, int32_t) {
        return static_cast<uint32_t>(std::clamp(a, 0, 255));
      }));
  Check<uint16_t, uint64_t, int32_t, int32_t>(
      "cvt.u16.u64 %d, %a;",
      std::function<uint16_t(uint64_t, int32_t, int32_t)>(
          [](uint64_t a, int32_t, int32_t) { return static_cast<uint16_t>(a); }));
}

TEST_P(Integer, PredicatesCombine) {
  using U = uint32_t;
  auto expected = std::function<U(U, U, U)>([](U a, U b, U c) {
    bool p = a < b, q = b == c, r = p && !q, s = !(a < c) || q;
    return U{r} + 2 * U{s} + 4 * U{p != q};
  });
  Check<U, U, U, U>(
      "setp.lt.u32 %p0, %a, %b; setp.eq.u32 %p1, %b, %c; not.pred %p2, %p1; and.pred %p2, %p0, "
      "%p2;\n"
      "setp.lt.or.u32 _|%p3, %a, %c, %p1; xor.pred %p0, %p0, %p1;\n"
      "selp.u32 %x0, 1, 0, %p2; selp.u32 %x1, 2, 0, %p3; selp.u32 %x2, 4, 0, %p0; add.u32 %d, %x0, "
      "%x1; add.u32 %d, %d, %x2;",
      expected);
}

TEST_P(Integer, GuardsLetOnlySomeLanesWrite) {
  using U = uint32_t;
  Check<U, U, U, U>(
      "mov.u32 %d, %c; setp.gt.u32 %p0, %a, %b; @%p0 add.u32 %d, %a, 1; @!%p0 mul.lo.u32 %d, %b, "
      "3;",
      std::function<U(U, U, U)>([](U a, U b, U) { return a > b ? a + 1 : b * 3; }));
}

}  // namespace
}  // namespace atp::sim
