// SPDX-License-Identifier: Apache-2.0
// ldmatrix, stmatrix, movmatrix: 8x8 matrices of 16-bit elements between shared memory and
// registers. Table = count and slots; r[5] = address, r[2] = offset, r[1] = source of movmatrix;
// aux as in memory.h; aux2 = transposed.
#include "sim/exec/handlers/matrix.h"
#include "sim/exec/handlers/memory.h"
#include "sim/exec/range_access.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

constexpr int kSide = 8;

uint32_t Pair(const uint16_t (*m)[kSide], int lane, bool transposed) {
  int major = lane / 4, minor = lane % 4 * 2;
  if (transposed) return m[minor][major] | static_cast<uint32_t>(m[minor + 1][major]) << 16;
  return m[major][minor] | static_cast<uint32_t>(m[major][minor + 1]) << 16;
}
void SetPair(uint16_t (*m)[kSide], int lane, bool transposed, uint32_t value) {
  int major = lane / 4, minor = lane % 4 * 2;
  (transposed ? m[minor][major] : m[major][minor]) = static_cast<uint16_t>(value);
  (transposed ? m[minor + 1][major] : m[major][minor + 1]) = static_cast<uint16_t>(value >> 16);
}

template <bool kStore>
const Insn* MoveRows(Warp& w, const Insn* i) {
  if (w.mask != kFullMask)
    return Fail(w, i, ExecStatus::kTrap, "ldmatrix or stmatrix without all lanes of the warp");
  const uint32_t* slots = w.frame->program->table + i->imm + 1;
  uint32_t count = slots[-1], result[4][kLanes];
  for (uint32_t x = 0; x < count; ++x) {
    uint16_t matrix[kSide][kSide];
    if (kStore) {
      for (int l = 0; l < kLanes; ++l)
        SetPair(matrix, l, i->aux2 != 0, Get<uint32_t>(At(w, slots[x]), l));
    }
    for (int row = 0; row < kSide; ++row) {
      int lane = static_cast<int>(x) * kSide + row;  // this lane gives the row's address
      const uint8_t* base = At(w, i->r[5]);
      uint64_t at =
          i->aux & kAuxWideAddress ? Get<uint64_t>(base, lane) : Get<uint32_t>(base, lane);
      at += static_cast<uint64_t>(int64_t{static_cast<int32_t>(i->r[2])});
      uint8_t* host = RangeAddress(w, i, lane, at, 16, 16, !kStore, kStore);
      if (host == nullptr) return kStop;
      if (kStore) {
        __builtin_memcpy(host, matrix[row], 16);
      } else {
        __builtin_memcpy(matrix[row], host, 16);
      }
    }
    if (!kStore) {
      for (int l = 0; l < kLanes; ++l) result[x][l] = Pair(matrix, l, i->aux2 != 0);
    }
  }
  for (uint32_t x = 0; x < count && !kStore;
       ++x) {  // last, because a result may lie in the address register
    for (int l = 0; l < kLanes; ++l) Put<uint32_t>(At(w, slots[x]), l, result[x][l]);
  }
  return i + 1;
}

const Insn* Transpose(Warp& w, const Insn* i) {
  if (w.mask != kFullMask)
    return Fail(w, i, ExecStatus::kTrap, "movmatrix without all lanes of the warp");
  uint16_t matrix[kSide][kSide];
  for (int l = 0; l < kLanes; ++l) SetPair(matrix, l, false, Get<uint32_t>(At(w, i->r[1]), l));
  uint8_t* d = At(w, w.frame->program->table[i->imm + 1]);
  for (int l = 0; l < kLanes; ++l) Put<uint32_t>(d, l, Pair(matrix, l, true));
  return i + 1;
}

}  // namespace

Handler PickMatrixMove(const ptx::Op& op, const Form&) {
  if (op.type() != Type::kB16 || op.shape_m != 8 || op.shape_n != 8 || op.shape_k != 0)
    return nullptr;
  switch (op.base) {
    case Base::kLdmatrix:
      return MoveRows<false>;
    case Base::kStmatrix:
      return MoveRows<true>;
    case Base::kMovmatrix:
      return op.Has(Mod::kTrans) ? Transpose : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
