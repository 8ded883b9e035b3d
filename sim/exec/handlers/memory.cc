// SPDX-License-Identifier: Apache-2.0
// ld and st of global, constant, generic and local memory, and of parameters on the stack of a
// device function. r[0..3] = data, r[5] = address.
#include "sim/exec/handlers/memory.h"

#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

template <class T>
ATP_INLINE T Read(const uint8_t* p) {
  T v;
  __builtin_memcpy(&v, p, sizeof(T));
  return v;
}
template <class T>
ATP_INLINE void Write(uint8_t* p, T v) {
  __builtin_memcpy(p, &v, sizeof(T));
}

template <class T, int kVector>
ATP_INLINE void LoadRun(const Warp& w, const Insn* i, const uint8_t* host, const Run& run) {
  constexpr int kStep = sizeof(T) * kVector;
  for (int k = 0; k < kVector; ++k) {
    uint8_t* d = At(w, i->r[k]);
    if (run.equal) {
      T value = Read<T>(host + k * sizeof(T));
      for (int l = 0; l < run.count; ++l) Put<T>(d, run.first + l, value);
    } else if (run.count == kLanes) {
      ATP_LANES(l) Put<T>(d, l, Read<T>(host + l * kStep + k * sizeof(T)));
    } else {
      for (int l = 0; l < run.count; ++l)
        Put<T>(d, run.first + l, Read<T>(host + l * kStep + k * sizeof(T)));
    }
  }
}
template <class T, int kVector>
ATP_INLINE void StoreRun(const Warp& w, const Insn* i, uint8_t* host, const Run& run) {
  constexpr int kStep = sizeof(T) * kVector;
  for (int k = 0; k < kVector; ++k) {
    const uint8_t* s = At(w, i->r[k]);
    if (run.equal) {
      Write<T>(host + k * sizeof(T), Get<T>(s, run.first + run.count - 1));  // the last lane wins
    } else if (run.count == kLanes) {
      ATP_LANES(l) Write<T>(host + l * kStep + k * sizeof(T), Get<T>(s, l));
    } else {
      for (int l = 0; l < run.count; ++l)
        Write<T>(host + l * kStep + k * sizeof(T), Get<T>(s, run.first + l));
    }
  }
}

// A run that is not in one region of ordinary memory: lane by lane, in whatever space each address
// lies.
template <class T, int kVector, bool kStore>
__attribute__((noinline)) bool LaneByLane(Warp& w, const Insn* i, const LaneAddresses& a,
                                          const Run& run) {
  for (int l = run.first; l < run.first + run.count; ++l) {
    uint8_t* host = LaneAddress(w, i, l, a.at[l], sizeof(T) * kVector, !kStore, kStore);
    if (host == nullptr) return false;
    Run one{l, 1, false};
    if (kStore) {
      StoreRun<T, kVector>(w, i, host, one);
    } else {
      LoadRun<T, kVector>(w, i, host, one);
    }
  }
  return true;
}

// Counts distinct sectors of the runs of one access. Runs in ascending order, the usual case, need
// no set.
class SectorCount {
 public:
  ATP_INLINE void Add(uint64_t begin, uint64_t end) {
    uint64_t first = begin >> 5, last = (end - 1) >> 5;
    ascending_ &= runs_ == 0 || first >= last_[runs_ - 1];
    count_ += last - first + 1 - (runs_ != 0 && first == last_[runs_ - 1] ? 1 : 0);
    first_[runs_] = first;
    last_[runs_++] = last;
  }
  ATP_INLINE uint64_t Total() const { return ascending_ ? count_ : Distinct(); }

 private:
  __attribute__((noinline)) uint64_t Distinct() const {
    SectorSet set;
    for (int k = 0; k < runs_; ++k) {
      for (uint64_t s = first_[k]; s <= last_[k]; ++s) set.Add(s);
    }
    return set.count;
  }
  uint64_t count_ = 0;
  int runs_ = 0;
  bool ascending_ = true;
  uint64_t first_[kLanes], last_[kLanes];
};

template <class T, int kVector, bool kStore>
const Insn* Access(Warp& w, const Insn* i) {
  constexpr uint64_t kStep = sizeof(T) * kVector;
  LaneAddresses a;
  ReadAddresses(w, i, &a);
  FindRuns(w, kStep, &a);
  uint32_t rest = w.mask;
  SectorCount sectors;
  while (rest != 0) {
    Run run = NextRun(a, &rest);
    uint64_t begin = a.at[run.first],
             end = begin + (run.equal ? kStep : kStep * static_cast<uint64_t>(run.count));
    if ((begin & (kStep - 1)) != 0) {
      return FailAddress(w, i, ExecStatus::kMisalignedAddress, "global", begin);
    }
    uint8_t* host = end < begin ? nullptr : Span<!kStore, kStore>(w, i, begin, end);
    if (host == nullptr) {
      if (!LaneByLane<T, kVector, kStore>(w, i, a, run)) return kStop;
      continue;
    }
    if (kStore) {
      StoreRun<T, kVector>(w, i, host, run);
    } else {
      LoadRun<T, kVector>(w, i, host, run);
    }
    sectors.Add(begin, end);
  }
  AddSectors(w, sectors.Total());
  return i + 1;
}

template <class T, int kVector, bool kStore>
const Insn* Local(Warp& w, const Insn* i) {
  constexpr uint64_t kStep = sizeof(T) * kVector;
  LaneAddresses a;
  ReadAddresses(w, i, &a);
  ATP_ACTIVE(l, w.mask) {
    uint64_t at = a.at[l];
    if (at > w.local_stride || w.local_stride - at < kStep) {
      return FailAddress(w, i, ExecStatus::kIllegalAddress, "local", at);
    }
    if ((at & (kStep - 1)) != 0)
      return FailAddress(w, i, ExecStatus::kMisalignedAddress, "local", at);
    uint8_t* host = w.local + size_t{l} * w.local_stride + at;
    Run one{static_cast<int>(l), 1, false};
    if (kStore) {
      StoreRun<T, kVector>(w, i, host, one);
    } else {
      LoadRun<T, kVector>(w, i, host, one);
    }
  }
  return i + 1;
}

// Parameter area at the start of the frame: imm = offset, aux = bytes per lane. The decoder has
// checked the bounds.
template <class T, int kVector, bool kStore>
const Insn* StackParam(Warp& w, const Insn* i) {
  ATP_ACTIVE(l, w.mask) {
    uint8_t* host = w.regs + size_t{l} * i->aux + i->imm;
    Run one{static_cast<int>(l), 1, false};
    if (kStore) {
      StoreRun<T, kVector>(w, i, host, one);
    } else {
      LoadRun<T, kVector>(w, i, host, one);
    }
  }
  return i + 1;
}

enum class Kind { kMemory, kLocal, kStackParam };

template <class T, int kVector, bool kStore>
Handler ByKind(Kind kind) {
  switch (kind) {
    case Kind::kMemory:
      return Access<T, kVector, kStore>;
    case Kind::kLocal:
      return Local<T, kVector, kStore>;
    case Kind::kStackParam:
      return StackParam<T, kVector, kStore>;
  }
  return nullptr;
}
template <int kVector, bool kStore>
Handler ByType(Type type, Kind kind) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return ByKind<uint8_t, kVector, kStore>(kind);
    case Type::kS8:
      return ByKind<int8_t, kVector, kStore>(kind);
    case Type::kU16:
    case Type::kB16:
    case Type::kF16:
    case Type::kBf16:
      return ByKind<uint16_t, kVector, kStore>(kind);
    case Type::kS16:
      return ByKind<int16_t, kVector, kStore>(kind);
    case Type::kU32:
    case Type::kB32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBf16x2:
      return ByKind<uint32_t, kVector, kStore>(kind);
    case Type::kU64:
    case Type::kB64:
    case Type::kS64:
    case Type::kF64:
      return ByKind<uint64_t, kVector, kStore>(kind);
    default:
      return nullptr;
  }
}
template <bool kStore>
Handler ByVector(const ptx::Op& op, Kind kind) {
  switch (op.vector) {
    case 1:
      return ByType<1, kStore>(op.type(), kind);
    case 2:
      return ByType<2, kStore>(op.type(), kind);
    case 4:
      return ByType<4, kStore>(op.type(), kind);
    default:
      return nullptr;
  }
}

}  // namespace

Handler PickMemory(const ptx::Op& op, const Form& form) {
  if (op.base != Base::kLd && op.base != Base::kSt && op.base != Base::kLdu) return nullptr;
  if (op.type_count != 1 || IsSharedSpace(op)) return nullptr;
  Kind kind = op.Has(Mod::kLocal) ? Kind::kLocal
              : form.stack_param  ? Kind::kStackParam
                                  : Kind::kMemory;
  return op.base == Base::kSt ? ByVector<true>(op, kind) : ByVector<false>(op, kind);
}

}  // namespace atp::sim::exec::ATP_VARIANT
