// SPDX-License-Identifier: Apache-2.0
// Branches, calls, moves between registers, and everything that has to leave the run loop.
#include "sim/exec/handlers/lanes.h"
#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

const Insn* Guard(Warp& w, const Insn* i) {
  uint32_t p = Pred(w, i->guard & ~1u);
  if (i->guard & 1) p = ~p;
  uint32_t all = w.mask, some = all & p;
  if (some == 0) return i + 1;
  if (some == all) return i->inner(w, i);
  w.mask = some;
  const Insn* next = i->inner(w, i);
  if (next == kStop) {  // the lanes that took part were put aside; the others go on
    AddGroup(w, w.frame, i + 1, all & ~p);
    return kStop;
  }
  w.mask = all;
  return next;
}

const Insn* Branch(Warp&, const Insn* i) { return i + i->imm; }

const Insn* BranchIf(Warp& w, const Insn* i) {
  uint32_t p = Pred(w, i->guard & ~1u);
  if (i->guard & 1) p = ~p;
  uint32_t taken = w.mask & p;
  if (taken == w.mask) return i + i->imm;
  if (taken == 0) return i + 1;
  AddGroup(w, w.frame, i + i->imm, taken);
  AddGroup(w, w.frame, i + 1, w.mask & ~taken);
  return kStop;
}

// brx.idx: r[1] = index, imm = place of the targets in the side table, aux = how many.
const Insn* BranchTable(Warp& w, const Insn* i) {
  const uint32_t* table = w.frame->program->table + i->imm;
  const Insn* code = w.frame->program->entry;
  uint32_t rest = w.mask;
  while (rest != 0) {
    uint32_t value = Get<uint32_t>(At(w, i->r[1]), __builtin_ctz(rest)), same = 0;
    ATP_ACTIVE(l, rest) same |= uint32_t{Get<uint32_t>(At(w, i->r[1]), int(l)) == value} << l;
    if (value >= i->aux) return Fail(w, i, ExecStatus::kTrap, "branch index out of range");
    if (same == w.mask) return code + table[value];
    AddGroup(w, w.frame, code + table[value], same);
    rest &= ~same;
  }
  return kStop;
}

const Insn* Call(Warp& w, const Insn* i) {
  return CallFunction(w, i, reinterpret_cast<const Program*>(i->imm), w.mask);
}
const Insn* Trap(Warp& w, const Insn* i) { return Fail(w, i, ExecStatus::kTrap, "trap"); }
const Insn* Missing(Warp& w, const Insn* i) {
  return Fail(w, i, ExecStatus::kUnsupported, "unsupported operands");
}
const Insn* YieldOp(Warp& w, const Insn* i) {  // nanosleep
  uint64_t longest = 0;
  ATP_ACTIVE(l, w.mask) {
    uint64_t ns = Get<uint32_t>(At(w, i->r[1]), int(l));
    longest = ns > longest ? ns : longest;
  }
  return Yield(w, i, longest);
}
const Insn* Nop(Warp&, const Insn* i) { return i + 1; }

struct Same {
  template <class T>
  static ATP_INLINE T Do(T a) {
    return a;
  }
};
template <class D, class S>
struct Extend {
  static ATP_INLINE D Do(S a) { return static_cast<D>(a); }
};

const Insn* CopyPred(Warp& w, const Insn* i) {
  SetPred(w, i->r[0], Pred(w, i->r[1]), w.mask);
  return i + 1;
}
const Insn* NotPred(Warp& w, const Insn* i) {
  SetPred(w, i->r[0], ~Pred(w, i->r[1]), w.mask);
  return i + 1;
}
const Insn* Clock32(Warp& w, const Insn* i) {
  uint32_t now = static_cast<uint32_t>(ClockOf(w));
  return Each<uint32_t>(w, i, [=](int) { return now; });
}
const Insn* ClockHi(Warp& w, const Insn* i) {
  uint32_t now = static_cast<uint32_t>(ClockOf(w) >> 32);
  return Each<uint32_t>(w, i, [=](int) { return now; });
}
const Insn* Clock64(Warp& w, const Insn* i) {
  uint64_t now = ClockOf(w);
  return Each<uint64_t>(w, i, [=](int) { return now; });
}
const Insn* Timer(Warp& w, const Insn* i) {
  uint64_t now = GlobalTimer(w);
  return Each<uint64_t>(w, i, [=](int) { return now; });
}
const Insn* TimerLo(Warp& w, const Insn* i) {
  uint32_t now = static_cast<uint32_t>(GlobalTimer(w));
  return Each<uint32_t>(w, i, [=](int) { return now; });
}
const Insn* TimerHi(Warp& w, const Insn* i) {
  uint32_t now = static_cast<uint32_t>(GlobalTimer(w) >> 32);
  return Each<uint32_t>(w, i, [=](int) { return now; });
}
const Insn* ActiveMask(Warp& w, const Insn* i) {
  uint32_t mask = w.mask;
  return Each<uint32_t>(w, i, [=](int) { return mask; });
}

// mov.bN d, {a, b, ..}: aux = parts, aux2 = bytes of each part.
const Insn* Pack(Warp& w, const Insn* i) {
  uint32_t parts = i->aux, bytes = i->aux2;
  ATP_ACTIVE(l, w.mask) {
    uint64_t value = 0;
    for (uint32_t k = 0; k < parts; ++k) {
      uint64_t part = bytes == 8 ? Get<uint64_t>(At(w, i->r[1 + k]), int(l))
                                 : Get<uint32_t>(At(w, i->r[1 + k]), int(l));
      if (bytes < 8) part &= (uint64_t{1} << (8 * bytes)) - 1;
      value |= part << (8 * bytes * k);
    }
    if (parts * bytes == 8) {
      Put<uint64_t>(At(w, i->r[0]), int(l), value);
    } else {
      Put<uint32_t>(At(w, i->r[0]), int(l), static_cast<uint32_t>(value));
    }
  }
  return i + 1;
}
// mov.bN {a, b, ..}, d: the source is r[5].
const Insn* Unpack(Warp& w, const Insn* i) {
  uint32_t parts = i->aux, bytes = i->aux2;
  ATP_ACTIVE(l, w.mask) {
    const uint8_t* from = At(w, i->r[5]);
    uint64_t value = parts * bytes == 8 ? Get<uint64_t>(from, int(l)) : Get<uint32_t>(from, int(l));
    for (uint32_t k = 0; k < parts; ++k) {
      uint32_t part = static_cast<uint32_t>(value >> (8 * bytes * k));
      if (bytes < 4) part &= (1u << (8 * bytes)) - 1;
      Put<uint32_t>(At(w, i->r[k]), int(l), part);
    }
  }
  return i + 1;
}
// mov d, variable in .local: the frame's base is known at run time only. imm = offset; aux = 8 or 4
// bytes.
const Insn* SetLocalAddress(Warp& w, const Insn* i) {
  uint64_t address = w.frame->local_base + static_cast<uint64_t>(i->imm);
  if (i->aux == 8) return Each<uint64_t>(w, i, [=](int) { return address; });
  return Each<uint32_t>(w, i, [=](int) { return static_cast<uint32_t>(address); });
}

}  // namespace

Handler PickControl(Control what) {
  switch (what) {
    case Control::kGuard:
      return Guard;
    case Control::kBranch:
      return Branch;
    case Control::kBranchIf:
      return BranchIf;
    case Control::kBranchTable:
      return BranchTable;
    case Control::kExit:
      return ExitLanes;
    case Control::kReturn:
      return ReturnLanes;
    case Control::kCall:
      return Call;
    case Control::kCallBuiltin:
      return CallBuiltin;
    case Control::kCallIndirect:
      return CallIndirect;
    case Control::kBarrier:
      return ArriveBarrier;
    case Control::kMissing:
      return Missing;
    case Control::kTrap:
      return Trap;
    case Control::kYield:
      return YieldOp;
    case Control::kCopy32:
      return Op1<Same, uint32_t, uint32_t>;
    case Control::kCopy64:
      return Op1<Same, uint64_t, uint64_t>;
    case Control::kCopyPred:
      return CopyPred;
    case Control::kNotPred:
      return NotPred;
    case Control::kNarrow:
      return Op1<Extend<uint32_t, uint64_t>, uint32_t, uint64_t>;
    case Control::kWidenSigned:
      return Op1<Extend<int64_t, int32_t>, int64_t, int32_t>;
    case Control::kWidenUnsigned:
      return Op1<Extend<uint64_t, uint32_t>, uint64_t, uint32_t>;
    case Control::kClock32:
      return Clock32;
    case Control::kClock64:
      return Clock64;
    case Control::kClockHi:
      return ClockHi;
    case Control::kGlobalTimer:
      return Timer;
    case Control::kGlobalTimerLo:
      return TimerLo;
    case Control::kGlobalTimerHi:
      return TimerHi;
    case Control::kActiveMask:
      return ActiveMask;
    case Control::kPack:
      return Pack;
    case Control::kUnpack:
      return Unpack;
    case Control::kNop:
      return Nop;
    case Control::kSetLocalAddress:
      return SetLocalAddress;
  }
  return nullptr;
}

}  // namespace atp::sim::exec::ATP_VARIANT
