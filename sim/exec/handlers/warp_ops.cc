// SPDX-License-Identifier: Apache-2.0
// Operations across the lanes of a warp: shfl, vote, match, redux, activemask, elect,
// bar.warp.sync. Layout: r[0] = result, r[1] = predicate result or sink, r[2..] = operands, r[5] =
// member mask.
#include "sim/exec/handlers/lanes.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

// True when the lanes that the instruction names are all here (or cannot come any more).
ATP_INLINE bool MembersHere(Warp& w, const Insn* i, uint32_t* members) {
  *members = Get<uint32_t>(At(w, i->r[5]), __builtin_ctz(w.mask));
  if ((*members & w.live & ~w.mask) == 0 || w.sync_granted) {
    w.sync_granted = false;
    return true;
  }
  return false;
}

enum class Shuffle { kUp, kDown, kBfly, kIdx };

template <Shuffle kMode, bool kSync>
const Insn* Shfl(Warp& w, const Insn* i) {
  uint32_t members = kFullMask;
  if (kSync && !MembersHere(w, i, &members)) return ParkForSync(w, i);
  const uint8_t *a = At(w, i->r[2]), *b = At(w, i->r[3]), *c = At(w, i->r[4]);
  alignas(64) uint32_t source[kLanes], result[kLanes];
  ATP_LANES(l) source[l] = Get<uint32_t>(a, l);
  uint32_t valid = 0;
  for (int l = 0; l < kLanes; ++l) {
    int operand = static_cast<int>(Get<uint32_t>(b, l) & 31),
        control = static_cast<int>(Get<uint32_t>(c, l));
    int clamp = control & 31, segment = control >> 8 & 31;
    int max_lane = (l & segment) | (clamp & ~segment), min_lane = l & segment, j = 0;
    bool in_range = false;
    switch (kMode) {
      case Shuffle::kUp:
        j = l - operand, in_range = j >= max_lane;
        break;
      case Shuffle::kDown:
        j = l + operand, in_range = j <= max_lane;
        break;
      case Shuffle::kBfly:
        j = l ^ operand, in_range = j <= max_lane;
        break;
      case Shuffle::kIdx:
        j = min_lane | (operand & ~segment), in_range = j <= max_lane;
        break;
    }
    if (!in_range) j = l;
    result[l] = source[j & 31];
    valid |= uint32_t{in_range} << l;
  }
  SetPred(w, i->r[1], valid, w.mask);
  const uint32_t* value = result;
  return Each<uint32_t>(w, i, [=](int l) { return value[l]; });
}

enum class Vote { kAll, kAny, kUni, kBallot };

template <Vote kMode, bool kSync>
const Insn* VoteOp(Warp& w, const Insn* i) {
  uint32_t members = kFullMask;
  if (kSync && !MembersHere(w, i, &members)) return ParkForSync(w, i);
  uint32_t here = w.mask & members, yes = Pred(w, i->r[2]) & here;
  if (kMode == Vote::kBallot) return Each<uint32_t>(w, i, [=](int) { return yes; });
  bool answer = kMode == Vote::kAll   ? yes == here
                : kMode == Vote::kAny ? yes != 0
                                      : yes == 0 || yes == here;
  SetPred(w, i->r[0], answer ? kFullMask : 0, w.mask);
  return i + 1;
}

template <class T, bool kAll>
const Insn* Match(Warp& w, const Insn* i) {
  uint32_t members;
  if (!MembersHere(w, i, &members)) return ParkForSync(w, i);
  const uint8_t* a = At(w, i->r[2]);
  uint32_t here = w.mask & members, result[kLanes] = {}, uniform = 0;
  ATP_ACTIVE(l, w.mask) {
    ATP_ACTIVE(k, here) result[l] |= uint32_t{Get<T>(a, int(k)) == Get<T>(a, int(l))} << k;
    if (kAll) {
      bool same = result[l] == here;
      uniform |= uint32_t{same} << l;
      if (!same) result[l] = 0;
    }
  }
  SetPred(w, i->r[1], uniform, w.mask);
  const uint32_t* value = result;
  return Each<uint32_t>(w, i, [=](int l) { return value[l]; });
}

struct AddOp {
  template <class T>
  static T Do(T a, T b) {
    return static_cast<T>(uint32_t(a) + uint32_t(b));
  }
};
struct MinOp {
  template <class T>
  static T Do(T a, T b) {
    return a < b ? a : b;
  }
};
struct MaxOp {
  template <class T>
  static T Do(T a, T b) {
    return a > b ? a : b;
  }
};
struct AndOp {
  template <class T>
  static T Do(T a, T b) {
    return a & b;
  }
};
struct OrOp {
  template <class T>
  static T Do(T a, T b) {
    return a | b;
  }
};
struct XorOp {
  template <class T>
  static T Do(T a, T b) {
    return a ^ b;
  }
};

template <class T, class F>
const Insn* Redux(Warp& w, const Insn* i) {
  uint32_t members;
  if (!MembersHere(w, i, &members)) return ParkForSync(w, i);
  uint32_t here = w.mask & members;
  if (here == 0) here = w.mask;
  const uint8_t* a = At(w, i->r[2]);
  T total = Get<T>(a, __builtin_ctz(here));
  ATP_ACTIVE(l, here & (here - 1)) total = F::Do(total, Get<T>(a, int(l)));
  return Each<T>(w, i, [=](int) { return total; });
}

const Insn* Elect(Warp& w, const Insn* i) {
  uint32_t members;
  if (!MembersHere(w, i, &members)) return ParkForSync(w, i);
  uint32_t here = w.mask & members,
           leader = static_cast<uint32_t>(__builtin_ctz(here != 0 ? here : w.mask));
  SetPred(w, i->r[1], 1u << leader, w.mask);
  return Each<uint32_t>(w, i, [=](int) { return leader; });
}

const Insn* WarpBarrier(Warp& w, const Insn* i) {
  uint32_t members;
  if (!MembersHere(w, i, &members)) return ParkForSync(w, i);
  return i + 1;
}

template <bool kSync>
Handler PickShuffle(const ptx::Op& op) {
  if (op.Has(Mod::kUp)) return Shfl<Shuffle::kUp, kSync>;
  if (op.Has(Mod::kDown)) return Shfl<Shuffle::kDown, kSync>;
  if (op.Has(Mod::kBfly)) return Shfl<Shuffle::kBfly, kSync>;
  return op.Has(Mod::kIdx) ? Shfl<Shuffle::kIdx, kSync> : nullptr;
}
template <bool kSync>
Handler PickVote(const ptx::Op& op) {
  if (op.Has(Mod::kAll)) return VoteOp<Vote::kAll, kSync>;
  if (op.Has(Mod::kAny)) return VoteOp<Vote::kAny, kSync>;
  if (op.Has(Mod::kUni)) return VoteOp<Vote::kUni, kSync>;
  return op.Has(Mod::kBallot) ? VoteOp<Vote::kBallot, kSync> : nullptr;
}
Handler PickRedux(const ptx::Op& op) {
  Type type = op.type();
  bool is_signed = type == Type::kS32;
  if (!is_signed && type != Type::kU32 && type != Type::kB32) return nullptr;
  if (op.Has(Mod::kAdd)) return Redux<uint32_t, AddOp>;
  if (op.Has(Mod::kMin)) return is_signed ? Redux<int32_t, MinOp> : Redux<uint32_t, MinOp>;
  if (op.Has(Mod::kMax)) return is_signed ? Redux<int32_t, MaxOp> : Redux<uint32_t, MaxOp>;
  if (op.Has(Mod::kAnd)) return Redux<uint32_t, AndOp>;
  if (op.Has(Mod::kOr)) return Redux<uint32_t, OrOp>;
  return op.Has(Mod::kXor) ? Redux<uint32_t, XorOp> : nullptr;
}

}  // namespace

Handler PickWarp(const ptx::Op& op) {
  switch (op.base) {
    case Base::kShfl:
      if (op.type() != Type::kB32) return nullptr;
      return op.Has(Mod::kSync) ? PickShuffle<true>(op) : PickShuffle<false>(op);
    case Base::kVote:
      return op.Has(Mod::kSync) ? PickVote<true>(op) : PickVote<false>(op);
    case Base::kMatch:
      if (op.type() == Type::kB32)
        return op.Has(Mod::kAll) ? Match<uint32_t, true> : Match<uint32_t, false>;
      if (op.type() == Type::kB64)
        return op.Has(Mod::kAll) ? Match<uint64_t, true> : Match<uint64_t, false>;
      return nullptr;
    case Base::kRedux:
      return PickRedux(op);
    case Base::kElect:
      return Elect;
    case Base::kActivemask:
      return PickControl(Control::kActiveMask);
    case Base::kBar:
    case Base::kBarrier:
      return op.Has(Mod::kWarp) ? WarpBarrier : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
