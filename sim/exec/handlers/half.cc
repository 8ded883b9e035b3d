// SPDX-License-Identifier: Apache-2.0
// f16, bf16 and their pairs. Sums and products are computed in float and rounded once more, which
// is exact (24 bits are at least 2 * 11 + 2); fused operations round to odd on the way.
#include "sim/exec/handlers/approx.h"
#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

struct F16 {
  static ATP_INLINE float Widen(uint32_t h) { return HalfToFloat(h & 0xffff); }
  static ATP_INLINE uint32_t Narrow(float f) { return FloatToHalf(f) & 0xffff; }
  static constexpr uint32_t kMinNormal = 0x0400;
};
struct B16 {
  static ATP_INLINE float Widen(uint32_t h) { return Bf16ToFloat(h & 0xffff); }
  static ATP_INLINE uint32_t Narrow(float f) { return FloatToBf16(f) & 0xffff; }
  static constexpr uint32_t kMinNormal = 0x0080;
};

struct Add {
  static ATP_INLINE float Do(float a, float b) { return a + b; }
};
struct Sub {
  static ATP_INLINE float Do(float a, float b) { return a - b; }
};
struct Mul {
  static ATP_INLINE float Do(float a, float b) { return a * b; }
};
struct Min {
  static ATP_INLINE float Do(float a, float b) { return MinOf(a, b); }
};
struct Max {
  static ATP_INLINE float Do(float a, float b) { return MaxOf(a, b); }
};
struct MinNan {
  static ATP_INLINE float Do(float a, float b) {
    return a != a || b != b ? Bits<float>(0x7fffffffu) : MinOf(a, b);
  }
};
struct MaxNan {
  static ATP_INLINE float Do(float a, float b) {
    return a != a || b != b ? Bits<float>(0x7fffffffu) : MaxOf(a, b);
  }
};

enum Finish : int { kPlain = 0, kSat = 1, kRelu = 2 };

template <int kFinish>
ATP_INLINE float FinishValue(float v) {
  if (kFinish == kSat) return Saturate(v);
  if (kFinish == kRelu) return v > 0.0f || v != v ? v : 0.0f;
  return v;
}
template <class H, bool kFtz>
ATP_INLINE uint32_t FlushHalf(uint32_t h) {
  return kFtz && (h & 0x7fff) < H::kMinNormal ? h & 0x8000 : h;
}

template <class H, bool kPair, class F>
ATP_INLINE uint32_t OnHalves(uint32_t a, uint32_t b, uint32_t c, F f) {
  uint32_t low = f(a & 0xffff, b & 0xffff, c & 0xffff);
  return kPair ? low | f(a >> 16, b >> 16, c >> 16) << 16 : low;
}

template <class F, class H, bool kPair, bool kFtz, int kFinish>
struct Binary {
  static ATP_INLINE uint32_t Do(uint32_t a, uint32_t b) {
    return OnHalves<H, kPair>(a, b, 0, [](uint32_t x, uint32_t y, uint32_t) {
      float v = F::Do(H::Widen(FlushHalf<H, kFtz>(x)), H::Widen(FlushHalf<H, kFtz>(y)));
      return FlushHalf<H, kFtz>(H::Narrow(FinishValue<kFinish>(v)));
    });
  }
};
template <class H, bool kPair, bool kFtz, int kFinish>
struct FusedAdd {
  static ATP_INLINE uint32_t Do(uint32_t a, uint32_t b, uint32_t c) {
    return OnHalves<H, kPair>(a, b, c, [](uint32_t x, uint32_t y, uint32_t z) {
      double odd = FmaOdd(H::Widen(FlushHalf<H, kFtz>(x)), H::Widen(FlushHalf<H, kFtz>(y)),
                          H::Widen(FlushHalf<H, kFtz>(z)));
      return FlushHalf<H, kFtz>(H::Narrow(FinishValue<kFinish>(DoubleToFloatOdd(odd))));
    });
  }
};
template <class H, bool kPair, bool kFtz>
struct Neg {
  static ATP_INLINE uint32_t Do(uint32_t a) {
    return OnHalves<H, kPair>(
        a, 0, 0, [](uint32_t x, uint32_t, uint32_t) { return FlushHalf<H, kFtz>(x) ^ 0x8000u; });
  }
};
template <class H, bool kPair, bool kFtz>
struct Abs {
  static ATP_INLINE uint32_t Do(uint32_t a) {
    return OnHalves<H, kPair>(
        a, 0, 0, [](uint32_t x, uint32_t, uint32_t) { return FlushHalf<H, kFtz>(x) & 0x7fffu; });
  }
};

// Functions: within half an ulp of the format or so, because float accuracy is rounded to it.
template <class H, bool kPair, bool kTanh>
const Insn* Function(Warp& w, const Insn* i) {
  ATP_ACTIVE(l, w.mask) {
    uint32_t a = Get<uint32_t>(At(w, i->r[1]), int(l)), result = 0;
    for (int k = 0; k < (kPair ? 2 : 1); ++k) {
      float v = H::Widen(a >> (16 * k));
      result |= H::Narrow(kTanh ? ApproxTanh(v) : ApproxExp2(v)) << (16 * k);
    }
    Put<uint32_t>(At(w, i->r[0]), int(l), result);
  }
  return i + 1;
}

template <class F, class H, bool kPair>
Handler PickBinary(const ptx::Op& op) {
  using U = uint32_t;
  bool ftz = op.Has(Mod::kFtz);
  if (op.Has(Mod::kSat))
    return ftz ? Op2<Binary<F, H, kPair, true, kSat>, U, U, U>
               : Op2<Binary<F, H, kPair, false, kSat>, U, U, U>;
  return ftz ? Op2<Binary<F, H, kPair, true, kPlain>, U, U, U>
             : Op2<Binary<F, H, kPair, false, kPlain>, U, U, U>;
}
template <class H, bool kPair>
Handler PickFused(const ptx::Op& op) {
  using U = uint32_t;
  bool ftz = op.Has(Mod::kFtz);
  if (op.Has(Mod::kSat))
    return ftz ? Op3<FusedAdd<H, kPair, true, kSat>, U, U, U, U>
               : Op3<FusedAdd<H, kPair, false, kSat>, U, U, U, U>;
  if (op.Has(Mod::kRelu))
    return ftz ? Op3<FusedAdd<H, kPair, true, kRelu>, U, U, U, U>
               : Op3<FusedAdd<H, kPair, false, kRelu>, U, U, U, U>;
  return ftz ? Op3<FusedAdd<H, kPair, true, kPlain>, U, U, U, U>
             : Op3<FusedAdd<H, kPair, false, kPlain>, U, U, U, U>;
}
template <class H, bool kPair>
Handler PickFor(const ptx::Op& op) {
  using U = uint32_t;
  if (op.HasAny({Mod::kRz, Mod::kRm, Mod::kRp, Mod::kXorsign})) return nullptr;
  bool ftz = op.Has(Mod::kFtz), nan = op.Has(Mod::kNan);
  switch (op.base) {
    case Base::kAdd:
      return PickBinary<Add, H, kPair>(op);
    case Base::kSub:
      return PickBinary<Sub, H, kPair>(op);
    case Base::kMul:
      return PickBinary<Mul, H, kPair>(op);
    case Base::kMin:
      return nan ? PickBinary<MinNan, H, kPair>(op) : PickBinary<Min, H, kPair>(op);
    case Base::kMax:
      return nan ? PickBinary<MaxNan, H, kPair>(op) : PickBinary<Max, H, kPair>(op);
    case Base::kFma:
      return PickFused<H, kPair>(op);
    case Base::kNeg:
      return ftz ? Op1<Neg<H, kPair, true>, U, U> : Op1<Neg<H, kPair, false>, U, U>;
    case Base::kAbs:
      return ftz ? Op1<Abs<H, kPair, true>, U, U> : Op1<Abs<H, kPair, false>, U, U>;
    case Base::kEx2:
      return Function<H, kPair, false>;
    case Base::kTanh:
      return Function<H, kPair, true>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler PickHalf(const ptx::Op& op) {
  switch (op.type()) {
    case Type::kF16:
      return PickFor<F16, false>(op);
    case Type::kF16x2:
      return PickFor<F16, true>(op);
    case Type::kBf16:
      return PickFor<B16, false>(op);
    case Type::kBf16x2:
      return PickFor<B16, true>(op);
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
