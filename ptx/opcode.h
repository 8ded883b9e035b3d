// SPDX-License-Identifier: Apache-2.0
// A PTX opcode taken apart: base name, types, modifiers, vector width, matrix shape.
//
// `ld.global.nc.v4.f32` becomes {kLd, [kF32], {global, nc}, vector 4}. Parsing says nothing about
// whether the combination can run: that is known by whoever picks a handler
// (sim/exec/handlers/pick.h). Pure functions, any thread. Names and meanings: "PTX ISA" manual,
// version 9.0.
#pragma once

#include <bitset>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace atp::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kU8,
  kS8,
  kB16,
  kU16,
  kS16,
  kF16,
  kBf16,
  kB32,
  kU32,
  kS32,
  kF32,
  kTf32,
  kF16x2,
  kBf16x2,
  kU16x2,
  kS16x2,
  kB64,
  kU64,
  kS64,
  kF64,
  kB128,
  kE4m3x2,
  kE5m2x2,
  kB1,
  kU4,
  kS4,
};

int TypeBytes(Type type);  // 0 for predicates and sub-byte types
bool IsFloat(Type type);
bool IsSigned(Type type);
std::string_view TypeName(Type type);
Type TypeFromName(std::string_view name);  // without the dot; kNone when it is not a type

// clang-format off
enum class Base : uint8_t {
  kUnknown, kAbs, kActivemask, kAdd, kAddc, kAnd, kAtom, kBar, kBarrier, kBfe, kBfi, kBfind, kBmsk, kBra, kBrev, kBrkpt,
  kBrx, kCall, kClz, kCnot, kCopysign, kCos, kCp, kCvt, kCvta, kDiscard, kDiv, kDp2a, kDp4a, kElect, kEx2, kExit, kFence,
  kFma, kFns, kIsspacep, kLd, kLdmatrix, kLdu, kLg2, kLop3, kMad, kMad24, kMadc, kMatch, kMax, kMbarrier, kMembar, kMin,
  kMma, kMov, kMovmatrix, kMul, kMul24, kNanosleep, kNeg, kNot, kOr, kPopc, kPrefetch, kPrefetchu, kPrmt, kRcp, kRed,
  kRedux, kRem, kRet, kRsqrt, kSad, kSelp, kSet, kSetp, kShf, kShfl, kShl, kShr, kSin, kSlct, kSqrt, kSt, kStmatrix, kSub,
  kSubc, kSuld, kSust, kSzext, kTanh, kTestp, kTex, kTrap, kVote, kWmma, kXor, kApplypriority, kPmevent,
  kGriddepcontrol, kSetmaxnreg,
};

enum class Mod : uint8_t {
  kRn, kRz, kRm, kRp, kRna, kRni, kRzi, kRmi, kRpi, kFtz, kSat, kApprox, kFull, kLo, kHi, kWide, kCc,
  kEq, kNe, kLt, kLe, kGt, kGe, kEqu, kNeu, kLtu, kLeu, kGtu, kGeu, kNum, kNan, kLs, kHs,
  kAnd, kOr, kXor, kAdd, kMin, kMax, kInc, kDec, kExch, kCas, kPopc,
  kGlobal, kShared, kSharedCta, kSharedCluster, kLocal, kConst, kParam, kParamEntry, kParamFunc,
  kNc, kVolatile, kRelaxed, kAcquire, kRelease, kAcqRel, kSc, kWeak, kMmio, kCta, kGpu, kSys, kCluster, kGl,
  kCa, kCg, kCs, kCv, kLu, kWb, kWt, kCacheHint, kCachePolicy, kTo, kUni, kSync, kAligned,
  kUp, kDown, kBfly, kIdx, kAll, kAny, kBallot, kShiftamt, kL, kR, kWrap, kClamp,
  kF4e, kB4e, kRc8, kEcl, kEcr, kRc16, kTrans, kRow, kCol, kA, kB, kC, kD, kLoad, kStore, kMma,
  kRed, kArrive, kWait, kInit, kInval, kTestWait, kTryWait, kArriveDrop, kPendingCount, kParity, kNoComplete, kNoinc,
  kAsync, kCommitGroup, kWaitGroup, kWaitAll, kMbarrier, kSatfinite, kRelu, kXorsign, kAbs, kNoftz,
  kFinite, kInfinite, kNumber, kNotanumber, kNormal, kSubnormal, kProxyAsync, kX1, kX2, kX4, kL1, kL2, kExtended,
  kWarp, kPop, k1d, k2d, k3d, kZero, kTrapOutside, kCount,
};
// clang-format on

struct Op {
  static constexpr int kMaxTypes = 4;
  Base base = Base::kUnknown;
  uint8_t vector = 1;  // .v2, .v4, .v8
  uint8_t type_count = 0;
  uint8_t shape_m = 0, shape_n = 0, shape_k = 0;  // matrix shape mMnNkK; ldmatrix m8n8 has k = 0
  Type types[kMaxTypes] = {};                     // in the order written: destination first
  std::bitset<static_cast<size_t>(Mod::kCount)> mods;
  uint8_t row_col = 0;    // mma: bit 0 = a is .col, bit 1 = b is .col
  std::string_view text;  // as written

  bool Has(Mod mod) const { return mods[static_cast<size_t>(mod)]; }
  bool HasAny(std::initializer_list<Mod> list) const {
    for (Mod mod : list) {
      if (Has(mod)) return true;
    }
    return false;
  }
  Type type() const {
    return type_count > 0 ? types[type_count - 1] : Type::kNone;
  }  // the last one
};

// False when a part of `text` is not a name that the ISA knows (or not one that this front end has
// heard of).
bool ParseOpcode(std::string_view text, Op* op);

// Operands that name memory outside the block? Used to choose between parallel and ordered
// execution.
bool IsSharedSpace(const Op& op);

}  // namespace atp::ptx
