// SPDX-License-Identifier: Apache-2.0
// wmma.load, wmma.mma, wmma.store. PTX leaves the layout of fragments open; here lane l holds
// elements l * n ... l * n + n - 1 of the matrix in row order (n = elements / 32), packed from the
// first register on; registers beyond that are zero.
//
// load, store: table = count and slots; r[5] = address, r[1] = stride (elements), r[2] = offset;
// aux as in memory.h; aux2 = rows | columns << 8 | column-major << 16. mma: as in matrix.cc.
#include "sim/exec/handlers/matrix.h"
#include "sim/exec/handlers/memory.h"
#include "sim/exec/range_access.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

template <int kBytes>
uint32_t GetPacked(Warp& w, const uint32_t* slots, int lane, int element) {
  constexpr int kPer = 4 / kBytes;
  uint32_t word =
      Get<uint32_t>(At(w, slots[element / kPer]), lane) >> (8 * kBytes * (element % kPer));
  return kBytes == 4 ? word : word & ((1u << (8 * kBytes % 32)) - 1);
}
template <int kBytes>
void SetPacked(Warp& w, const uint32_t* slots, int lane, int element, uint32_t value) {
  constexpr int kPer = 4 / kBytes;
  uint32_t shift = 8 * kBytes * static_cast<uint32_t>(element % kPer);
  uint32_t mask = kBytes == 4 ? kFullMask : ((1u << (8 * kBytes % 32)) - 1) << shift;
  uint8_t* at = At(w, slots[element / kPer]);
  Put<uint32_t>(at, lane, (Get<uint32_t>(at, lane) & ~mask) | (value << shift & mask));
}

// Loads or stores the matrix line by line; a line is a row, or a column when the matrix lies
// column-major.
template <int kBytes, bool kStore>
const Insn* MoveFragment(Warp& w, const Insn* i) {
  if (w.mask != kFullMask)
    return Fail(w, i, ExecStatus::kTrap, "wmma without all lanes of the warp");
  const uint32_t* slots = w.frame->program->table + i->imm + 1;
  uint32_t registers = slots[-1];
  int rows = static_cast<int>(i->aux2 & 0xff), columns = static_cast<int>(i->aux2 >> 8 & 0xff);
  bool column_major = (i->aux2 >> 16 & 1) != 0;
  int lines = column_major ? columns : rows, length = column_major ? rows : columns,
      per_lane = rows * columns / kLanes;
  const uint8_t* base = At(w, i->r[5]);
  uint64_t address = i->aux & kAuxWideAddress ? Get<uint64_t>(base, 0) : Get<uint32_t>(base, 0);
  address += static_cast<uint64_t>(int64_t{static_cast<int32_t>(i->r[2])});
  uint64_t stride = Get<uint32_t>(At(w, i->r[1]), 0);
  if (!kStore) {
    for (uint32_t r = 0; r < registers; ++r) ATP_LANES(l) Put<uint32_t>(At(w, slots[r]), l, 0u);
  }
  for (int line = 0; line < lines; ++line) {
    uint64_t at = address + static_cast<uint64_t>(line) * stride * kBytes;
    uint8_t* host =
        RangeAddress(w, i, 0, at, static_cast<uint32_t>(length * kBytes), kBytes, !kStore, kStore);
    if (host == nullptr) return kStop;
    for (int k = 0; k < length; ++k) {
      int index = column_major ? k * columns + line : line * columns + k;
      uint32_t value = 0;
      if (kStore) {
        value = GetPacked<kBytes>(w, slots, index / per_lane, index % per_lane);
        __builtin_memcpy(host + k * kBytes, &value, kBytes);
      } else {
        __builtin_memcpy(&value, host + k * kBytes, kBytes);
        SetPacked<kBytes>(w, slots, index / per_lane, index % per_lane, value);
      }
    }
  }
  return i + 1;
}

struct AsHalf {
  static float Do(uint32_t v) { return HalfToFloat(v & 0xffff); }
  static constexpr int kBytes = 2;
  using Value = float;
};
struct AsBHalf {
  static float Do(uint32_t v) { return Bf16ToFloat(v & 0xffff); }
  static constexpr int kBytes = 2;
  using Value = float;
};
struct AsTf32 {
  static float Do(uint32_t v) { return Bits<float>(v & 0xffffe000u); }
  static constexpr int kBytes = 4;
  using Value = float;
};
struct AsFloat {
  static float Do(uint32_t v) { return Bits<float>(v); }
  static constexpr int kBytes = 4;
  using Value = float;
};
struct AsS8 {
  static int32_t Do(uint32_t v) { return static_cast<int8_t>(v); }
  static constexpr int kBytes = 1;
  using Value = int32_t;
};
struct AsU8 {
  static int32_t Do(uint32_t v) { return static_cast<uint8_t>(v); }
  static constexpr int kBytes = 1;
  using Value = int32_t;
};
struct AsS32 {
  static int32_t Do(uint32_t v) { return static_cast<int32_t>(v); }
  static constexpr int kBytes = 4;
  using Value = int32_t;
};

ATP_INLINE float Step(float a, float b, float sum) { return Fma(a, b, sum); }
ATP_INLINE int32_t Step(int32_t a, int32_t b, int32_t sum) {
  return static_cast<int32_t>(static_cast<uint32_t>(a * b) + static_cast<uint32_t>(sum));
}

template <class EA, class EB, class ED, class EC>
const Insn* Multiply(Warp& w, const Insn* i) {
  if (w.mask != kFullMask)
    return Fail(w, i, ExecStatus::kTrap, "wmma without all lanes of the warp");
  using V = typename EC::Value;
  const uint32_t* d = w.frame->program->table + i->imm + 1;
  const uint32_t* a = d + d[-1] + 1;
  const uint32_t* b = a + a[-1] + 1;
  const uint32_t* c = b + b[-1] + 1;
  int m = static_cast<int>(i->aux2 & 0xff), n = static_cast<int>(i->aux2 >> 8 & 0xff),
      k = static_cast<int>(i->aux2 >> 16 & 0xff);
  V left[512], right[512], sums[256];
  auto read = [&](auto element, const uint32_t* slots, int count, V* out) {
    using E = decltype(element);
    int per_lane = count / kLanes;
    for (int x = 0; x < count; ++x)
      out[x] = static_cast<V>(E::Do(GetPacked<E::kBytes>(w, slots, x / per_lane, x % per_lane)));
  };
  read(EA{}, a, m * k, left);
  read(EB{}, b, k * n, right);
  read(EC{}, c, m * n, sums);
  for (int r = 0; r < m; ++r) {
    for (int x = 0; x < k; ++x) {
      V factor = left[r * k + x];
      for (int y = 0; y < n; ++y) sums[r * n + y] = Step(factor, right[x * n + y], sums[r * n + y]);
    }
  }
  int per_lane = m * n / kLanes;
  for (int x = 0; x < m * n; ++x) {
    uint32_t bits;
    if constexpr (ED::kBytes == 2) {
      bits = FloatToHalf(sums[x]);
    } else if constexpr (std::is_same_v<V, float>) {
      bits = Bits<uint32_t>(Canonical(sums[x]));
    } else {
      bits = static_cast<uint32_t>(sums[x]);
    }
    SetPacked<ED::kBytes>(w, d, x / per_lane, x % per_lane, bits);
  }
  return i + 1;
}

bool KnownShape(const ptx::Op& op, Type element) {
  int m = op.shape_m, n = op.shape_n, k = op.shape_k;
  if (element == Type::kTf32) return m == 16 && n == 16 && k == 8;
  if (k == 8) return m == 16 && n == 16 && element == Type::kF32;  // the accumulator of tf32
  return k == 16 && ((m == 16 && n == 16) || (m == 32 && n == 8) || (m == 8 && n == 32));
}

Handler PickMultiply(const ptx::Op& op) {
  if (op.Has(Mod::kSatfinite)) return nullptr;
  if (op.type_count == 2) {  // d and c; a and b are f16
    if (!KnownShape(op, Type::kF16)) return nullptr;
    bool d32 = op.types[0] == Type::kF32, c32 = op.types[1] == Type::kF32;
    if ((!d32 && op.types[0] != Type::kF16) || (!c32 && op.types[1] != Type::kF16)) return nullptr;
    if (d32)
      return c32 ? Multiply<AsHalf, AsHalf, AsFloat, AsFloat>
                 : Multiply<AsHalf, AsHalf, AsFloat, AsHalf>;
    return c32 ? Multiply<AsHalf, AsHalf, AsHalf, AsFloat>
               : Multiply<AsHalf, AsHalf, AsHalf, AsHalf>;
  }
  if (op.type_count != 4 || op.types[1] != op.types[2] || !KnownShape(op, op.types[1]))
    return nullptr;
  switch (op.types[1]) {
    case Type::kBf16:
      return Multiply<AsBHalf, AsBHalf, AsFloat, AsFloat>;
    case Type::kTf32:
      return Multiply<AsTf32, AsTf32, AsFloat, AsFloat>;
    case Type::kS8:
      return Multiply<AsS8, AsS8, AsS32, AsS32>;
    case Type::kU8:
      return Multiply<AsU8, AsU8, AsS32, AsS32>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler PickWmma(const ptx::Op& op) {
  if (op.Has(Mod::kMma)) return PickMultiply(op);
  bool store = op.Has(Mod::kStore);
  if (!store && !op.Has(Mod::kLoad)) return nullptr;
  if (!KnownShape(op, op.type())) return nullptr;
  switch (ptx::TypeBytes(op.type())) {
    case 1:
      return store ? MoveFragment<1, true> : MoveFragment<1, false>;
    case 2:
      return store ? MoveFragment<2, true> : MoveFragment<2, false>;
    case 4:
      return store ? MoveFragment<4, true> : MoveFragment<4, false>;
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
