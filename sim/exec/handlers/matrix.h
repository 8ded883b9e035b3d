// SPDX-License-Identifier: Apache-2.0
// Elements of matrix operands, and who answers for which matrix instruction.
#pragma once

#include "sim/exec/handlers/floating.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {

inline constexpr int kMaxK = 64;

// Element k of a register of one lane.
struct Half {
  static constexpr int kBits = 16;
  static float Element(Warp& w, uint32_t slot, int l, int k) {
    return HalfToFloat(Get<uint32_t>(At(w, slot), l) >> (16 * k) & 0xffff);
  }
};
struct BHalf {
  static constexpr int kBits = 16;
  static float Element(Warp& w, uint32_t slot, int l, int k) {
    return Bf16ToFloat(Get<uint32_t>(At(w, slot), l) >> (16 * k) & 0xffff);
  }
};
struct Tf32 {  // the low 13 bits do not take part
  static constexpr int kBits = 32;
  static float Element(Warp& w, uint32_t slot, int l, int) {
    return Bits<float>(Get<uint32_t>(At(w, slot), l) & 0xffffe000u);
  }
};
struct Double {
  static constexpr int kBits = 32;  // one to a register
  static double Element(Warp& w, uint32_t slot, int l, int) { return Get<double>(At(w, slot), l); }
};
template <bool kSigned>
struct Int8 {
  static constexpr int kBits = 8;
  static int64_t Element(Warp& w, uint32_t slot, int l, int k) {
    uint32_t byte = Get<uint32_t>(At(w, slot), l) >> (8 * k);
    return kSigned ? int64_t{static_cast<int8_t>(byte)} : int64_t{static_cast<uint8_t>(byte)};
  }
};
template <bool kSigned>
struct Int4 {
  static constexpr int kBits = 4;
  static int64_t Element(Warp& w, uint32_t slot, int l, int k) {
    uint32_t nibble = Get<uint32_t>(At(w, slot), l) >> (4 * k) & 15;
    return kSigned && nibble >= 8 ? int64_t{nibble} - 16 : int64_t{nibble};
  }
};

Handler PickWmma(const ptx::Op& op);
Handler PickMatrixMove(const ptx::Op& op, const Form& form);

}  // namespace atp::sim::exec::ATP_VARIANT
