// SPDX-License-Identifier: Apache-2.0
// atom and red. Lanes take their turn in order, so that sums are the same in every run; kernels
// with global atomics run on one thread. r[0] = old value (a sink for red), r[1], r[2] = operands,
// r[5] = address.
#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/memory.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

struct AddOp {
  template <class T>
  static T Do(T old, T b, T) {
    return static_cast<T>(old + b);
  }
};
struct FloatAddOp {
  template <class T>
  static T Do(T old, T b, T) {
    return Canonical(old + b);
  }
};
struct MinOp {
  template <class T>
  static T Do(T old, T b, T) {
    return b < old ? b : old;
  }
};
struct MaxOp {
  template <class T>
  static T Do(T old, T b, T) {
    return b > old ? b : old;
  }
};
struct AndOp {
  template <class T>
  static T Do(T old, T b, T) {
    return old & b;
  }
};
struct OrOp {
  template <class T>
  static T Do(T old, T b, T) {
    return old | b;
  }
};
struct XorOp {
  template <class T>
  static T Do(T old, T b, T) {
    return old ^ b;
  }
};
struct ExchOp {
  template <class T>
  static T Do(T, T b, T) {
    return b;
  }
};
struct CasOp {
  template <class T>
  static T Do(T old, T b, T c) {
    return old == b ? c : old;
  }
};
struct IncOp {
  template <class T>
  static T Do(T old, T b, T) {
    return old >= b ? T(0) : static_cast<T>(old + 1);
  }
};
struct DecOp {
  template <class T>
  static T Do(T old, T b, T) {
    return old == 0 || old > b ? b : static_cast<T>(old - 1);
  }
};
template <bool kBf16>
struct HalfAdd {
  static uint32_t Sum(uint32_t a, uint32_t b) {
    if (kBf16) return FloatToBf16(Bf16ToFloat(a & 0xffff) + Bf16ToFloat(b & 0xffff)) & 0xffff;
    return FloatToHalf(HalfToFloat(a & 0xffff) + HalfToFloat(b & 0xffff)) & 0xffff;
  }
  static uint16_t Do(uint16_t old, uint16_t b, uint16_t) {
    return static_cast<uint16_t>(Sum(old, b));
  }
  static uint32_t Do(uint32_t old, uint32_t b, uint32_t) {
    return Sum(old, b) | Sum(old >> 16, b >> 16) << 16;
  }
};

// int64 sums wrap: go through the unsigned type.
struct WrapAdd {
  template <class T>
  static T Do(T old, T b, T) {
    return static_cast<T>(std::make_unsigned_t<T>(old) + std::make_unsigned_t<T>(b));
  }
};

ATP_INLINE uint8_t* AtomicAddress(Warp& w, const Insn* i, int l, uint64_t address, uint32_t bytes) {
  if ((address & (bytes - 1)) != 0) {
    FailAddress(w, i, ExecStatus::kMisalignedAddress, i->aux & kAuxShared ? "shared" : "global",
                address);
    return nullptr;
  }
  if (i->aux & kAuxShared) {
    uint32_t size = w.block->shared_bytes;
    if (address > size || size - address < bytes) {
      FailAddress(w, i, ExecStatus::kIllegalAddress, "shared", address);
      return nullptr;
    }
    return w.block->shared + address;
  }
  return LaneAddress(w, i, l, address, bytes, true, true);
}

template <class T, class F>
const Insn* Atomic(Warp& w, const Insn* i) {
  LaneAddresses a;
  ReadAddresses(w, i, &a);
  if (!(i->aux & kAuxWideAddress)) ATP_LANES(l) a.at[l] &= 0xffffffffu;
  SectorSet sectors;
  ATP_ACTIVE(l, w.mask) {
    uint8_t* host = AtomicAddress(w, i, int(l), a.at[l], sizeof(T));
    if (host == nullptr) return kStop;
    T old;
    __builtin_memcpy(&old, host, sizeof(T));
    T b = Get<T>(At(w, i->r[1]), int(l)), c = Get<T>(At(w, i->r[2]), int(l));
    T result = F::Do(old, b, c);
    __builtin_memcpy(host, &result, sizeof(T));
    Put<T>(At(w, i->r[0]), int(l), old);
    if (!(i->aux & kAuxShared)) sectors.Add(a.at[l] >> 5);
  }
  AddSectors(w, sectors.count);
  return i + 1;
}

template <class F>
Handler Bitwise(Type type) {
  if (type == Type::kB16) return Atomic<uint16_t, F>;
  if (type == Type::kB32 || type == Type::kU32 || type == Type::kS32 || type == Type::kF32)
    return Atomic<uint32_t, F>;
  return type == Type::kB64 || type == Type::kU64 || type == Type::kS64 || type == Type::kF64
             ? Atomic<uint64_t, F>
             : nullptr;
}
template <class F>
Handler Ordered(Type type) {
  switch (type) {
    case Type::kU32:
      return Atomic<uint32_t, F>;
    case Type::kS32:
      return Atomic<int32_t, F>;
    case Type::kU64:
      return Atomic<uint64_t, F>;
    case Type::kS64:
      return Atomic<int64_t, F>;
    default:
      return nullptr;
  }
}
Handler Adding(Type type) {
  switch (type) {
    case Type::kF32:
      return Atomic<float, FloatAddOp>;
    case Type::kF64:
      return Atomic<double, FloatAddOp>;
    case Type::kF16:
      return Atomic<uint16_t, HalfAdd<false>>;
    case Type::kBf16:
      return Atomic<uint16_t, HalfAdd<true>>;
    case Type::kF16x2:
      return Atomic<uint32_t, HalfAdd<false>>;
    case Type::kBf16x2:
      return Atomic<uint32_t, HalfAdd<true>>;
    default:
      return Ordered<WrapAdd>(type);
  }
}

}  // namespace

Handler PickAtomic(const ptx::Op& op, const Form&) {
  if ((op.base != Base::kAtom && op.base != Base::kRed) || op.vector != 1 || op.type_count != 1)
    return nullptr;
  Type type = op.type();
  if (op.HasAny({Mod::kLocal, Mod::kConst, Mod::kParam, Mod::kAsync})) return nullptr;
  if (op.Has(Mod::kAdd)) return Adding(type);
  if (op.Has(Mod::kMin)) return Ordered<MinOp>(type);
  if (op.Has(Mod::kMax)) return Ordered<MaxOp>(type);
  if (op.Has(Mod::kAnd)) return Bitwise<AndOp>(type);
  if (op.Has(Mod::kOr)) return Bitwise<OrOp>(type);
  if (op.Has(Mod::kXor)) return Bitwise<XorOp>(type);
  if (op.Has(Mod::kExch)) return Bitwise<ExchOp>(type);
  if (op.Has(Mod::kCas)) return Bitwise<CasOp>(type);
  if (op.Has(Mod::kInc)) return type == Type::kU32 ? Atomic<uint32_t, IncOp> : nullptr;
  if (op.Has(Mod::kDec)) return type == Type::kU32 ? Atomic<uint32_t, DecOp> : nullptr;
  return nullptr;
}

}  // namespace atp::sim::exec::ATP_VARIANT
