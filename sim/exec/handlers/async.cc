// SPDX-License-Identifier: Apache-2.0
// cp.async and mbarrier. Copies are done at once, which the memory model allows; so waiting for
// groups does nothing.
//
// An mbarrier is 64 bits that PTX leaves open; here: pending arrivals (20 bits), expected arrivals
// (20 bits), phase (bit 40).
#include "sim/exec/handlers/memory.h"
#include "sim/exec/handlers/pick.h"
#include "sim/exec/range_access.h"

namespace atp::sim::exec::ATP_VARIANT {
namespace {

using ptx::Base;
using ptx::Mod;
using ptx::Type;

constexpr uint64_t kCountMask = (1u << 20) - 1;
constexpr int kExpectedShift = 20, kPhaseShift = 40;

ATP_INLINE uint64_t AddressOf(const Warp& w, const Insn* i, int l) {
  const uint8_t* base = At(w, i->r[5]);
  uint64_t at = i->aux & kAuxWideAddress ? Get<uint64_t>(base, l) : Get<uint32_t>(base, l);
  return at + static_cast<uint64_t>(i->imm);
}

// r[5] = destination in shared memory, r[1] = source (8 bytes a lane), r[2] = bytes to read (the
// rest is zero), r[3] = predicate that says "read nothing"; imm = offset of the destination, r[4] =
// offset of the source, aux2 = bytes.
const Insn* Copy(Warp& w, const Insn* i) {
  SectorSet sectors;
  ATP_ACTIVE(l, w.mask) {
    uint32_t bytes = i->aux2, wanted = Get<uint32_t>(At(w, i->r[2]), int(l));
    if (Pred(w, i->r[3]) >> l & 1) wanted = 0;
    if (wanted > bytes) wanted = bytes;
    uint64_t to = AddressOf(w, i, int(l));
    uint64_t from = Get<uint64_t>(At(w, i->r[1]), int(l)) +
                    static_cast<uint64_t>(int64_t{static_cast<int32_t>(i->r[4])});
    uint8_t buffer[16] = {};
    if (wanted != 0) {
      if ((from & (bytes - 1)) != 0)
        return FailAddress(w, i, ExecStatus::kMisalignedAddress, "global", from);
      const uint8_t* host = Span<true, false>(w, i, from, from + wanted);
      if (host == nullptr) return FailAddress(w, i, ExecStatus::kIllegalAddress, "global", from);
      __builtin_memcpy(buffer, host, wanted);
      sectors.Add(from >> 5);
    }
    uint8_t* shared = RangeAddress(w, i, int(l), to, bytes, bytes, false, true);
    if (shared == nullptr) return kStop;
    __builtin_memcpy(shared, buffer, bytes);
  }
  AddSectors(w, sectors.count);
  return i + 1;
}

ATP_INLINE uint64_t Load(const uint8_t* p) {
  uint64_t v;
  __builtin_memcpy(&v, p, 8);
  return v;
}

uint64_t Arrived(uint64_t state, uint64_t count, bool drop) {
  uint64_t pending = state & kCountMask, expected = state >> kExpectedShift & kCountMask,
           phase = state >> kPhaseShift & 1;
  pending = (pending - count) & kCountMask;
  if (drop) expected = (expected - count) & kCountMask;
  if (pending == 0) phase ^= 1, pending = expected;
  return pending | expected << kExpectedShift | phase << kPhaseShift;
}

enum class Barrier { kInit, kInvalidate, kArrive, kArriveDrop };

// r[0] = state (arrive), r[1] = count.
template <Barrier kWhat>
const Insn* Change(Warp& w, const Insn* i) {
  ATP_ACTIVE(l, w.mask) {
    uint8_t* host = RangeAddress(w, i, int(l), AddressOf(w, i, int(l)), 8, 8, true, true);
    if (host == nullptr) return kStop;
    uint64_t old = Load(host), count = Get<uint32_t>(At(w, i->r[1]), int(l)) & kCountMask, next = 0;
    if (kWhat == Barrier::kInit) next = count | count << kExpectedShift;
    if (kWhat == Barrier::kArrive) next = Arrived(old, count, false);
    if (kWhat == Barrier::kArriveDrop) next = Arrived(old, count, true);
    __builtin_memcpy(host, &next, 8);
    if (kWhat == Barrier::kArrive || kWhat == Barrier::kArriveDrop)
      Put<uint64_t>(At(w, i->r[0]), int(l), old);
  }
  return i + 1;
}

// r[0] = predicate, r[1] = state of an arrival, or the parity of a phase. Who has to wait lets the
// others run.
template <bool kParity>
const Insn* TestWait(Warp& w, const Insn* i) {
  uint32_t done = 0;
  ATP_ACTIVE(l, w.mask) {
    const uint8_t* host = RangeAddress(w, i, int(l), AddressOf(w, i, int(l)), 8, 8, true, false);
    if (host == nullptr) return kStop;
    uint64_t phase = Load(host) >> kPhaseShift & 1;
    uint64_t waited = kParity ? Get<uint32_t>(At(w, i->r[1]), int(l)) & 1
                              : Get<uint64_t>(At(w, i->r[1]), int(l)) >> kPhaseShift & 1;
    done |= uint32_t{phase != waited} << l;
  }
  SetPred(w, i->r[0], done, w.mask);
  return done == w.mask ? i + 1 : Yield(w, i, 0);
}

const Insn* PendingCount(Warp& w, const Insn* i) {
  const uint8_t* a = At(w, i->r[1]);
  return Each<uint32_t>(
      w, i, [=](int l) { return static_cast<uint32_t>(Get<uint64_t>(a, l) & kCountMask); });
}

Handler PickBarrier(const ptx::Op& op) {
  if (op.type() != Type::kB64) return nullptr;
  if (op.Has(Mod::kInit)) return Change<Barrier::kInit>;
  if (op.Has(Mod::kInval)) return Change<Barrier::kInvalidate>;
  if (op.Has(Mod::kArrive)) return Change<Barrier::kArrive>;
  if (op.Has(Mod::kArriveDrop)) return Change<Barrier::kArriveDrop>;
  if (op.HasAny({Mod::kTestWait, Mod::kTryWait}))
    return op.Has(Mod::kParity) ? TestWait<true> : TestWait<false>;
  return op.Has(Mod::kPendingCount) ? PendingCount : nullptr;
}

}  // namespace

Handler PickAsync(const ptx::Op& op, const Form&) {
  if (op.base == Base::kMbarrier) return PickBarrier(op);
  if (!op.Has(Mod::kAsync)) return nullptr;
  if (op.HasAny({Mod::kCommitGroup, Mod::kWaitGroup, Mod::kWaitAll}))
    return PickControl(Control::kNop);
  // Without .noinc the pending count grows by one before the arrival: nothing is left to do.
  if (op.Has(Mod::kMbarrier))
    return op.Has(Mod::kNoinc) ? Change<Barrier::kArrive> : PickControl(Control::kNop);
  return IsSharedSpace(op) && op.Has(Mod::kGlobal) && op.HasAny({Mod::kCa, Mod::kCg}) ? Copy
                                                                                      : nullptr;
}

}  // namespace atp::sim::exec::ATP_VARIANT
