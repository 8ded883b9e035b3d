// SPDX-License-Identifier: Apache-2.0
// The instructions that reach.h runs: of PTX what makes addresses and branches, with operands as
// numbers of registers. For the files of reach_*.cc only.
#pragma once

#include <cstdint>
#include <vector>

namespace atp::ptx {

// clang-format off
enum class ReachOp : uint8_t {
  kMov, kAdd, kSub, kMul, kMulHi, kMulWide, kMad, kMadHi, kMadWide, kDiv, kRem, kMin, kMax, kAbs, kNeg,
  kAnd, kOr, kXor, kNot, kShl, kShr, kCvt, kBfe, kBfi, kLop3, kSetp, kSelp, kPack, kUnpack,
  kUnknown,    // what cannot be computed: loaded, floating, from other threads
  kOwnAddress, // of shared, local or constant memory, or of a variable
  kParameterAddress, kLoadParameter,
  kTouch, kBranch, kExit,
};
enum class Comparison : uint8_t { kEq, kNe, kLt, kLe, kGt, kGe };
enum class Combination : uint8_t { kNone, kAnd, kOr, kXor };
// clang-format on

// Registers that differ from thread to thread or from launch to launch, in this order.
enum ReachSpecial : uint32_t {
  kTid = 0,  // x, y, z, as in the following
  kNtid = 3,
  kCtaid = 6,
  kNctaid = 9,
  kLane = 12,
  kWarp = 13,
  kReachSpecials = 14,
};

inline constexpr uint32_t kNoRegister = UINT32_MAX;

struct ReachStep {
  ReachOp op = ReachOp::kUnknown;
  uint8_t width = 4;     // bytes of the sources; 0 = a predicate
  uint8_t to_width = 4;  // of the result
  bool is_signed = false;
  bool guard_negated = false;
  bool stores = false;  // kTouch
  Comparison comparison = Comparison::kEq;
  Combination combination = Combination::kNone;
  uint32_t guard = kNoRegister;
  uint32_t to[2] = {kNoRegister, kNoRegister};
  uint32_t from[4] = {kNoRegister, kNoRegister, kNoRegister, kNoRegister};
  int64_t addend =
      0;  // of an address; of kLoadParameter and kParameterAddress: place in the buffer
  uint32_t bytes = 0;  // kTouch: how many, in addition to rows * from[1], where there is one
  uint32_t rows = 0;
  uint32_t target = 0;  // kBranch: the step to go on with
};

// The steps that touches and branches depend on, without regard to their order. reach_slice.cc
std::vector<ReachStep> SliceOf(const std::vector<ReachStep>& steps);

}  // namespace atp::ptx
