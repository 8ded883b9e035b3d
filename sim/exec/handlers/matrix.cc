// SPDX-License-Identifier: Apache-2.0
// mma.sync: matrices in the registers of a warp, in the layout that "PTX ISA" draws for each shape.
//
// In short: lane = 4 * g + t. A register of `a` holds e = 32 / bits neighbours in a row: row g (+8
// for odd registers of 16-row shapes), column t * e (+4e for each further pair). `b` likewise with
// columns g. 32-bit accumulators: two neighbours in row g, then row g + 8. Products are exact and
// added in the order of k, one rounding each (f32), which the hardware does not promise.
//
// Insn::imm = place of the operands in the side table: counts and slots of d, a, b, c. aux = k | m
// << 8, aux2 = saturate.
#include "sim/exec/handlers/matrix.h"

#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

template <class E>
constexpr int kPerRegister = 32 / E::kBits;

// Fills `matrix[major][k]` (row of a, column of b) from registers.
template <class E, class V>
void GatherA(Warp& w, const uint32_t* slots, uint32_t count, int rows, V (*matrix)[kMaxK]) {
  constexpr int e = kPerRegister<E>;
  for (uint32_t r = 0; r < count; ++r) {
    int row_step = rows == 16 ? static_cast<int>(r & 1) * 8 : 0;
    int column_step = static_cast<int>(rows == 16 ? r >> 1 : r) * 4 * e;
    for (int l = 0; l < kLanes; ++l) {
      for (int k = 0; k < e; ++k)
        matrix[l / 4 + row_step][l % 4 * e + k + column_step] = E::Element(w, slots[r], l, k);
    }
  }
}
template <class E, class V>
void GatherB(Warp& w, const uint32_t* slots, uint32_t count, V (*matrix)[kMaxK]) {
  constexpr int e = kPerRegister<E>;
  for (uint32_t r = 0; r < count; ++r) {
    for (int l = 0; l < kLanes; ++l) {
      for (int k = 0; k < e; ++k)
        matrix[l / 4][l % 4 * e + k + static_cast<int>(r) * 4 * e] = E::Element(w, slots[r], l, k);
    }
  }
}

// Accumulators: how many lie in a register, and how to read and write one.
struct AccF32 {
  using Value = float;
  static constexpr int kPer = 1;
  static Value Read(Warp& w, uint32_t slot, int l, int) { return Get<float>(At(w, slot), l); }
  static void Write(Warp& w, uint32_t slot, int l, int, Value v, bool) {
    Put<float>(At(w, slot), l, Canonical(v));
  }
  static Value Step(Value a, Value b, Value sum) { return Fma(a, b, sum); }
};
struct AccF16 {  // summed in float, rounded at the end
  using Value = float;
  static constexpr int kPer = 2;
  static Value Read(Warp& w, uint32_t slot, int l, int k) {
    return HalfToFloat(Get<uint32_t>(At(w, slot), l) >> (16 * k) & 0xffff);
  }
  static void Write(Warp& w, uint32_t slot, int l, int k, Value v, bool) {
    uint32_t old = k == 0 ? 0 : Get<uint32_t>(At(w, slot), l) & 0xffff;
    Put<uint32_t>(At(w, slot), l, old | (FloatToHalf(v) & 0xffff) << (16 * k));
  }
  static Value Step(Value a, Value b, Value sum) { return Fma(a, b, sum); }
};
struct AccS32 {
  using Value = int64_t;
  static constexpr int kPer = 1;
  static Value Read(Warp& w, uint32_t slot, int l, int) { return Get<int32_t>(At(w, slot), l); }
  static void Write(Warp& w, uint32_t slot, int l, int, Value v, bool saturate) {
    if (saturate) v = v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : v;
    Put<int32_t>(At(w, slot), l, static_cast<int32_t>(v));
  }
  static Value Step(Value a, Value b, Value sum) { return a * b + sum; }
};
struct AccF64 {
  using Value = double;
  static constexpr int kPer = 1;
  static Value Read(Warp& w, uint32_t slot, int l, int) { return Get<double>(At(w, slot), l); }
  static void Write(Warp& w, uint32_t slot, int l, int, Value v, bool) {
    Put<double>(At(w, slot), l, Canonical(v));
  }
  static Value Step(Value a, Value b, Value sum) { return Fma(a, b, sum); }
};

template <class EA, class EB, class AccD, class AccC>
const Insn* Mma(Warp& w, const Insn* i) {
  if (w.mask != kFullMask)
    return Fail(w, i, ExecStatus::kTrap, "mma.sync without all lanes of the warp");
  using V = typename AccC::Value;
  const uint32_t* table = w.frame->program->table + i->imm;
  const uint32_t* d = table + 1;
  const uint32_t* a = d + table[0] + 1;
  const uint32_t* b = a + a[-1] + 1;
  const uint32_t* c = b + b[-1] + 1;
  int m = static_cast<int>(i->aux >> 8), k_count = static_cast<int>(i->aux & 0xff);
  V rows[16][kMaxK], columns[8][kMaxK], result[16][8];
  GatherA<EA>(w, a, a[-1], m, rows);
  GatherB<EB>(w, b, b[-1], columns);
  for (int l = 0; l < kLanes; ++l) {
    for (int k = 0; k < 2 * (m / 8); ++k) {
      result[l / 4 + k / 2 * 8][l % 4 * 2 + k % 2] =
          AccC::Read(w, c[k / AccC::kPer], l, k % AccC::kPer);
    }
  }
  for (int r = 0; r < m; ++r) {
    for (int n = 0; n < 8; ++n) {
      V sum = result[r][n];
      for (int k = 0; k < k_count; ++k) sum = AccC::Step(rows[r][k], columns[n][k], sum);
      result[r][n] = sum;
    }
  }
  for (int l = 0; l < kLanes; ++l) {
    for (int k = 0; k < 2 * (m / 8); ++k) {
      AccD::Write(w, d[k / AccD::kPer], l, k % AccD::kPer,
                  result[l / 4 + k / 2 * 8][l % 4 * 2 + k % 2], i->aux2 != 0);
    }
  }
  return i + 1;
}

template <class E>
Handler PickFloatMma(Type d, Type c) {
  if (d == Type::kF32 && c == Type::kF32) return Mma<E, E, AccF32, AccF32>;
  if (d == Type::kF16 && c == Type::kF16) return Mma<E, E, AccF16, AccF16>;
  if (d == Type::kF32 && c == Type::kF16) return Mma<E, E, AccF32, AccF16>;
  return d == Type::kF16 && c == Type::kF32 ? Mma<E, E, AccF16, AccF32> : nullptr;
}
template <class EA>
Handler PickIntMma(Type b) {
  if (b == Type::kS8) return Mma<EA, Int8<true>, AccS32, AccS32>;
  return b == Type::kU8 ? Mma<EA, Int8<false>, AccS32, AccS32> : nullptr;
}
template <class EA>
Handler PickInt4Mma(Type b) {
  if (b == Type::kS4) return Mma<EA, Int4<true>, AccS32, AccS32>;
  return b == Type::kU4 ? Mma<EA, Int4<false>, AccS32, AccS32> : nullptr;
}

Handler PickMma(const ptx::Op& op) {
  if (op.type_count != 4 || op.shape_n != 8 || op.row_col != 2) return nullptr;
  int m = op.shape_m, k = op.shape_k;
  Type a = op.types[1], b = op.types[2];
  bool wide = m == 16;
  if (!wide && m != 8) return nullptr;
  if (a == Type::kF64)
    return b == a && !wide && k == 4 ? Mma<Double, Double, AccF64, AccF64> : nullptr;
  if (a == Type::kS8 || a == Type::kU8) {
    if (wide ? k != 16 && k != 32 : k != 16) return nullptr;
    return a == Type::kS8 ? PickIntMma<Int8<true>>(b) : PickIntMma<Int8<false>>(b);
  }
  if (a == Type::kS4 || a == Type::kU4) {
    if (wide ? k != 32 && k != 64 : k != 32) return nullptr;
    return a == Type::kS4 ? PickInt4Mma<Int4<true>>(b) : PickInt4Mma<Int4<false>>(b);
  }
  if (a != b || !wide) return nullptr;
  if (a == Type::kTf32)
    return k == 4 || k == 8 ? PickFloatMma<Tf32>(op.types[0], op.types[3]) : nullptr;
  if (k != 8 && k != 16) return nullptr;
  if (a == Type::kF16) return PickFloatMma<Half>(op.types[0], op.types[3]);
  return a == Type::kBf16 ? PickFloatMma<BHalf>(op.types[0], op.types[3]) : nullptr;
}

}  // namespace

Handler PickMatrix(const ptx::Op& op, const Form& form) {
  switch (op.base) {
    case Base::kMma:
      return PickMma(op);
    case Base::kWmma:
      return PickWmma(op);
    default:
      return PickMatrixMove(op, form);
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
