// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/handlers/pick.h"

#define ATP_NAME_OF(variant) ATP_NAME_TEXT(variant)
#define ATP_NAME_TEXT(variant) #variant

namespace atp::sim::exec {
namespace ATP_VARIANT {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

namespace {

bool IsHalf(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF16x2 || type == Type::kBf16x2;
}

}  // namespace

Handler Pick(const ptx::Op& op, const Form& form) {
  switch (op.base) {
    case Base::kLd:
    case Base::kSt:
    case Base::kLdu:
      return IsSharedSpace(op) ? PickShared(op, form) : PickMemory(op, form);
    case Base::kAtom:
    case Base::kRed:
      return PickAtomic(op, form);
    case Base::kSetp:
    case Base::kSet:
    case Base::kTestp:
      return PickCompare(op);
    case Base::kCvt:
      return PickConvert(op);
    case Base::kShfl:
    case Base::kVote:
    case Base::kMatch:
    case Base::kRedux:
    case Base::kElect:
    case Base::kActivemask:
    case Base::kBar:
    case Base::kBarrier:
      return PickWarp(op);
    case Base::kMma:
    case Base::kWmma:
    case Base::kLdmatrix:
    case Base::kStmatrix:
    case Base::kMovmatrix:
      return PickMatrix(op, form);
    case Base::kCp:
    case Base::kMbarrier:
      return PickAsync(op, form);
    case Base::kTex:
    case Base::kSuld:
    case Base::kSust:
      return PickTexture(op);
    default:
      break;
  }
  if (Handler handler = PickBits(op)) return handler;
  if (IsHalf(op.type())) return PickHalf(op);
  if (Handler handler = PickApprox(op)) return handler;
  return ptx::IsFloat(op.type()) ? PickFloat(op) : PickInteger(op);
}

}  // namespace ATP_VARIANT

extern const Variant ATP_VARIANT_OBJECT;
const Variant ATP_VARIANT_OBJECT = {ATP_NAME_OF(ATP_VARIANT), ATP_VARIANT::Pick,
                                    ATP_VARIANT::PickControl};

}  // namespace atp::sim::exec
