// SPDX-License-Identifier: Apache-2.0
// Bit operations, selects and predicate logic.
#include "sim/exec/handlers/lanes.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

struct And {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static ATP_INLINE T Do(T a, T b) {
    return a ^ b;
  }
};
struct Not {
  template <class T>
  static ATP_INLINE T Do(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <class T>
  static ATP_INLINE T Do(T a) {
    return a == 0 ? T(1) : T(0);
  }
};
struct Shl {
  template <class T>
  static ATP_INLINE T Do(T a, uint32_t n) {
    return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << n);
  }
};
struct Shr {  // shifting by the width or more fills with the sign
  template <class T>
  static ATP_INLINE T Do(T a, uint32_t n) {
    constexpr uint32_t kWidth = 8 * sizeof(T);
    if (std::is_signed_v<T>) return static_cast<T>(a >> (n >= kWidth ? kWidth - 1 : n));
    return n >= kWidth ? T(0) : static_cast<T>(a >> n);
  }
};
struct Popc {
  static ATP_INLINE uint32_t Do(uint32_t a) { return uint32_t(__builtin_popcount(a)); }
  static ATP_INLINE uint32_t Do(uint64_t a) { return uint32_t(__builtin_popcountll(a)); }
};
struct Clz {
  static ATP_INLINE uint32_t Do(uint32_t a) { return a == 0 ? 32 : uint32_t(__builtin_clz(a)); }
  static ATP_INLINE uint32_t Do(uint64_t a) { return a == 0 ? 64 : uint32_t(__builtin_clzll(a)); }
};
struct Brev {
  static ATP_INLINE uint32_t Do(uint32_t a) {
    a = (a >> 1 & 0x55555555u) | (a & 0x55555555u) << 1;
    a = (a >> 2 & 0x33333333u) | (a & 0x33333333u) << 2;
    a = (a >> 4 & 0x0f0f0f0fu) | (a & 0x0f0f0f0fu) << 4;
    return __builtin_bswap32(a);
  }
  static ATP_INLINE uint64_t Do(uint64_t a) {
    return uint64_t{Do(static_cast<uint32_t>(a))} << 32 | Do(static_cast<uint32_t>(a >> 32));
  }
};
template <bool kShiftAmount>
struct Bfind {
  template <class T>
  static ATP_INLINE uint32_t Do(T a) {
    using U = std::make_unsigned_t<T>;
    U v = static_cast<U>(std::is_signed_v<T> && a < 0 ? ~a : a);
    if (v == 0) return UINT32_MAX;
    uint32_t position = 63 - uint32_t(__builtin_clzll(v));
    return kShiftAmount ? 8 * sizeof(T) - 1 - position : position;
  }
};
struct Bfe {
  template <class T>
  static ATP_INLINE T Do(T a, uint32_t position, uint32_t length) {
    using U = std::make_unsigned_t<T>;
    constexpr uint32_t kWidth = 8 * sizeof(T);
    position &= 0xff, length &= 0xff;
    if (length == 0) return 0;
    uint32_t last = position + length - 1 < kWidth - 1 ? position + length - 1 : kWidth - 1;
    U sign = std::is_signed_v<T> ? static_cast<U>(a) >> last & 1 : U(0);
    if (position >= kWidth) return static_cast<T>(U(0) - sign);
    U field = static_cast<U>(a) >> position;
    if (length > kWidth - position) length = kWidth - position;
    if (length == kWidth) return a;
    U mask = (U(1) << length) - 1;
    field &= mask;
    return static_cast<T>(sign ? field | ~mask : field);
  }
};
struct Bfi {  // a into b
  template <class T>
  static ATP_INLINE T Do(T a, T b, uint32_t position, uint32_t length) {
    constexpr uint32_t kWidth = 8 * sizeof(T);
    position &= 0xff, length &= 0xff;
    if (length == 0 || position >= kWidth) return b;
    T mask = length >= kWidth ? ~T(0) : static_cast<T>((T(1) << length) - 1);
    return (b & ~(mask << position)) | (a & mask) << position;
  }
};
template <bool kWrap>
struct Bmsk {
  static ATP_INLINE uint32_t Do(uint32_t position, uint32_t width) {
    if (kWrap) position &= 31, width &= 31;
    if (position >= 32 || width == 0) return 0;
    uint32_t mask = width >= 32 ? UINT32_MAX : (1u << width) - 1;
    return mask << position;
  }
};
template <bool kSigned, bool kWrap>
struct Szext {
  static ATP_INLINE uint32_t Do(uint32_t value, uint32_t width) {
    if (kWrap) width &= 31;
    if (width == 0) return 0;
    if (width >= 32) return value;
    uint32_t low = value & ((1u << width) - 1);
    bool negative = kSigned && (low >> (width - 1) & 1) != 0;
    return negative ? low | UINT32_MAX << width : low;
  }
};
template <bool kLeft, bool kWrap>
struct Funnel {  // a = low word, b = high word
  static ATP_INLINE uint32_t Do(uint32_t a, uint32_t b, uint32_t c) {
    uint32_t n = kWrap ? c & 31 : (c > 32 ? 32 : c);
    uint64_t both = uint64_t{b} << 32 | a;
    return kLeft ? static_cast<uint32_t>(both << n >> 32) : static_cast<uint32_t>(both >> n);
  }
};
struct Copysign32 {
  static ATP_INLINE uint32_t Do(uint32_t a, uint32_t b) {
    return (a & 0x80000000u) | (b & 0x7fffffffu);
  }
};
struct Copysign64 {
  static ATP_INLINE uint64_t Do(uint64_t a, uint64_t b) {
    constexpr uint64_t kSign = uint64_t{1} << 63;
    return (a & kSign) | (b & ~kSign);
  }
};

const Insn* Lop3(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]);
  uint32_t table = i->aux;
  return Each<uint32_t>(w, i, [=](int l) {
    uint32_t x = Get<uint32_t>(a, l), y = Get<uint32_t>(b, l), z = Get<uint32_t>(c, l), result = 0;
    for (uint32_t k = 0; k < 8; ++k) {
      uint32_t term = (k & 4 ? x : ~x) & (k & 2 ? y : ~y) & (k & 1 ? z : ~z);
      result |= table >> k & 1 ? term : 0;
    }
    return result;
  });
}

template <class T>
const Insn* BfiOp(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]), *d = At(w, i->r[4]);
  return Each<T>(w, i, [=](int l) {
    return Bfi::Do<T>(Get<T>(a, l), Get<T>(b, l), Get<uint32_t>(c, l), Get<uint32_t>(d, l));
  });
}

// Selector of the special modes, as if it had been written out for the default mode ("PTX ISA",
// prmt).
uint32_t PrmtSelector(uint32_t mode, uint32_t n) {
  static constexpr uint16_t kTable[6][4] = {
      {0x3210, 0x4321, 0x5432, 0x6543}, {0x5670, 0x6701, 0x7012, 0x0123},
      {0x0000, 0x1111, 0x2222, 0x3333}, {0x3210, 0x3211, 0x3222, 0x3333},
      {0x0000, 0x1110, 0x2210, 0x3210}, {0x1010, 0x3232, 0x1010, 0x3232}};
  return kTable[mode - 1][n & 3];
}

const Insn* Prmt(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]);
  ATP_ACTIVE(l, w.mask) {
    uint64_t both = uint64_t{Get<uint32_t>(b, int(l))} << 32 | Get<uint32_t>(a, int(l));
    uint32_t selector = Get<uint32_t>(c, int(l)), result = 0;
    if (i->aux != 0) selector = PrmtSelector(i->aux, selector);
    for (int k = 0; k < 4; ++k) {
      uint32_t pick = selector >> (4 * k);
      uint32_t byte = static_cast<uint32_t>(both >> (8 * (pick & 7))) & 0xff;
      if (pick & 8) byte = byte & 0x80 ? 0xff : 0;
      result |= byte << (8 * k);
    }
    Put<uint32_t>(At(w, i->r[0]), int(l), result);
  }
  return i + 1;
}

const Insn* Fns(Warp& w, const Insn* i) {
  ATP_ACTIVE(l, w.mask) {
    uint32_t mask = Get<uint32_t>(At(w, i->r[1]), int(l));
    int32_t base = Get<int32_t>(At(w, i->r[2]), int(l)),
            offset = Get<int32_t>(At(w, i->r[3]), int(l));
    uint32_t result = UINT32_MAX;
    if (offset == 0) {
      if (base >= 0 && base < 32 && mask >> base & 1) result = static_cast<uint32_t>(base);
    } else {
      int step = offset > 0 ? 1 : -1;
      int64_t wanted = offset > 0 ? offset : -int64_t{offset}, count = 0;
      for (int64_t at = base; at >= 0 && at < 32; at += step) {
        if ((mask >> at & 1) != 0 && ++count == wanted) {
          result = static_cast<uint32_t>(at);
          break;
        }
      }
    }
    Put<uint32_t>(At(w, i->r[0]), int(l), result);
  }
  return i + 1;
}

template <class T>
const Insn* Selp(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]);
  uint32_t p = Pred(w, i->r[3]);
  return Each<T>(w, i, [=](int l) {
    bool first = sizeof(T) == 8 ? (p & kBits.wide[l]) != 0 : (p & kBits.narrow[l]) != 0;
    return first ? Get<T>(a, l) : Get<T>(b, l);
  });
}

template <class T, class C>
const Insn* Slct(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]);
  return Each<T>(w, i, [=](int l) { return Get<C>(c, l) >= C(0) ? Get<T>(a, l) : Get<T>(b, l); });
}

template <class F>
const Insn* PredOp2(Warp& w, const Insn* i) {
  SetPred(w, i->r[0], F::template Do<uint32_t>(Pred(w, i->r[1]), Pred(w, i->r[2])), w.mask);
  return i + 1;
}

template <class F>
Handler Logic(Type type) {
  switch (type) {
    case Type::kPred:
      return PredOp2<F>;
    case Type::kB16:
      return Op2<F, uint16_t, uint16_t, uint16_t>;
    case Type::kB32:
      return Op2<F, uint32_t, uint32_t, uint32_t>;
    case Type::kB64:
      return Op2<F, uint64_t, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}
template <class F>
Handler Logic1(Type type) {
  switch (type) {
    case Type::kB16:
      return Op1<F, uint16_t, uint16_t>;
    case Type::kB32:
      return Op1<F, uint32_t, uint32_t>;
    case Type::kB64:
      return Op1<F, uint64_t, uint64_t>;
    default:
      return nullptr;
  }
}
template <class F>
Handler Count(Type type) {
  if (type == Type::kB32) return Op1<F, uint32_t, uint32_t>;
  if (type == Type::kB64) return Op1<F, uint32_t, uint64_t>;
  return nullptr;
}
template <bool kAmount>
Handler PickBfind(Type type) {
  switch (type) {
    case Type::kU32:
      return Op1<Bfind<kAmount>, uint32_t, uint32_t>;
    case Type::kS32:
      return Op1<Bfind<kAmount>, uint32_t, int32_t>;
    case Type::kU64:
      return Op1<Bfind<kAmount>, uint32_t, uint64_t>;
    case Type::kS64:
      return Op1<Bfind<kAmount>, uint32_t, int64_t>;
    default:
      return nullptr;
  }
}
Handler PickBfe(Type type) {
  switch (type) {
    case Type::kU32:
      return Op3<Bfe, uint32_t, uint32_t, uint32_t, uint32_t>;
    case Type::kS32:
      return Op3<Bfe, int32_t, int32_t, uint32_t, uint32_t>;
    case Type::kU64:
      return Op3<Bfe, uint64_t, uint64_t, uint32_t, uint32_t>;
    case Type::kS64:
      return Op3<Bfe, int64_t, int64_t, uint32_t, uint32_t>;
    default:
      return nullptr;
  }
}
Handler PickShift(const ptx::Op& op) {
  if (op.base == Base::kShl) {
    switch (op.type()) {
      case Type::kB16:
        return Op2<Shl, uint16_t, uint16_t, uint32_t>;
      case Type::kB32:
        return Op2<Shl, uint32_t, uint32_t, uint32_t>;
      case Type::kB64:
        return Op2<Shl, uint64_t, uint64_t, uint32_t>;
      default:
        return nullptr;
    }
  }
  switch (op.type()) {
    case Type::kB16:
    case Type::kU16:
      return Op2<Shr, uint16_t, uint16_t, uint32_t>;
    case Type::kS16:
      return Op2<Shr, int16_t, int16_t, uint32_t>;
    case Type::kB32:
    case Type::kU32:
      return Op2<Shr, uint32_t, uint32_t, uint32_t>;
    case Type::kS32:
      return Op2<Shr, int32_t, int32_t, uint32_t>;
    case Type::kB64:
    case Type::kU64:
      return Op2<Shr, uint64_t, uint64_t, uint32_t>;
    case Type::kS64:
      return Op2<Shr, int64_t, int64_t, uint32_t>;
    default:
      return nullptr;
  }
}
Handler PickSzext(const ptx::Op& op) {
  bool wrap = op.Has(Mod::kWrap);
  if (op.type() == Type::kU32)
    return wrap ? Op2<Szext<false, true>, uint32_t, uint32_t, uint32_t>
                : Op2<Szext<false, false>, uint32_t, uint32_t, uint32_t>;
  if (op.type() != Type::kS32) return nullptr;
  return wrap ? Op2<Szext<true, true>, uint32_t, uint32_t, uint32_t>
              : Op2<Szext<true, false>, uint32_t, uint32_t, uint32_t>;
}
Handler PickFunnel(const ptx::Op& op) {
  bool wrap = op.Has(Mod::kWrap);
  if (!wrap && !op.Has(Mod::kClamp)) return nullptr;
  using U = uint32_t;
  if (op.Has(Mod::kL))
    return wrap ? Op3<Funnel<true, true>, U, U, U, U> : Op3<Funnel<true, false>, U, U, U, U>;
  return wrap ? Op3<Funnel<false, true>, U, U, U, U> : Op3<Funnel<false, false>, U, U, U, U>;
}
Handler PickSlct(const ptx::Op& op) {
  if (op.type_count != 2) return nullptr;
  bool wide = ptx::TypeBytes(op.types[0]) == 8, narrow = ptx::TypeBytes(op.types[0]) <= 4;
  if (op.types[1] == Type::kS32)
    return wide ? Slct<uint64_t, int32_t> : narrow ? Slct<uint32_t, int32_t> : nullptr;
  if (op.types[1] == Type::kF32)
    return wide ? Slct<uint64_t, float> : narrow ? Slct<uint32_t, float> : nullptr;
  return nullptr;
}

}  // namespace

Handler PickBits(const ptx::Op& op) {
  Type type = op.type();
  int bytes = ptx::TypeBytes(type);
  switch (op.base) {
    case Base::kAnd:
      return Logic<And>(type);
    case Base::kOr:
      return Logic<Or>(type);
    case Base::kXor:
      return Logic<Xor>(type);
    case Base::kNot:
      return type == Type::kPred ? PickControl(Control::kNotPred) : Logic1<Not>(type);
    case Base::kCnot:
      return Logic1<Cnot>(type);
    case Base::kShl:
    case Base::kShr:
      return PickShift(op);
    case Base::kPopc:
      return Count<Popc>(type);
    case Base::kClz:
      return Count<Clz>(type);
    case Base::kBrev:
      if (type == Type::kB32) return Op1<Brev, uint32_t, uint32_t>;
      return type == Type::kB64 ? Op1<Brev, uint64_t, uint64_t> : nullptr;
    case Base::kBfind:
      return op.Has(Mod::kShiftamt) ? PickBfind<true>(type) : PickBfind<false>(type);
    case Base::kBfe:
      return PickBfe(type);
    case Base::kBfi:
      if (type == Type::kB32) return BfiOp<uint32_t>;
      return type == Type::kB64 ? BfiOp<uint64_t> : nullptr;
    case Base::kBmsk:
      return op.Has(Mod::kWrap) ? Op2<Bmsk<true>, uint32_t, uint32_t, uint32_t>
                                : Op2<Bmsk<false>, uint32_t, uint32_t, uint32_t>;
    case Base::kSzext:
      return PickSzext(op);
    case Base::kShf:
      return type == Type::kB32 ? PickFunnel(op) : nullptr;
    case Base::kLop3:
      return type == Type::kB32 && op.mods.none() ? Lop3 : nullptr;
    case Base::kPrmt:
      return type == Type::kB32 ? Prmt : nullptr;
    case Base::kFns:
      return type == Type::kB32 ? Fns : nullptr;
    case Base::kSelp:
      if (type == Type::kPred || bytes > 8 || bytes < 2) return nullptr;
      return bytes == 8 ? Selp<uint64_t> : Selp<uint32_t>;
    case Base::kSlct:
      return PickSlct(op);
    case Base::kCopysign:
      if (type == Type::kF32) return Op2<Copysign32, uint32_t, uint32_t, uint32_t>;
      return type == Type::kF64 ? Op2<Copysign64, uint64_t, uint64_t, uint64_t> : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
