// SPDX-License-Identifier: Apache-2.0
// How a handler walks over the 32 lanes. Included by every file of this folder, each of which is
// compiled three times (ATP_VARIANT = sse2, avx2, avx512) with its own namespace. Loops are written
// so that the compiler vectorises them.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/exec/warp.h"

#define ATP_INLINE inline __attribute__((always_inline))
// A destination may be the same register as a source (never a part of it), hence no dependence
// between lanes.
#define ATP_LANES(l) _Pragma("GCC ivdep") for (int l = 0; l < kLanes; ++l)
#define ATP_ACTIVE(l, mask)                                                         \
  for (uint32_t rest_##l = (mask), l;                                               \
       rest_##l != 0 && (l = static_cast<uint32_t>(__builtin_ctz(rest_##l)), true); \
       rest_##l &= rest_##l - 1)

namespace atp::sim::exec::ATP_VARIANT {

struct LaneBits {
  uint32_t narrow[kLanes];
  uint64_t wide[kLanes];
  constexpr LaneBits() : narrow(), wide() {
    for (int l = 0; l < kLanes; ++l) narrow[l] = 1u << l, wide[l] = uint64_t{1} << l;
  }
};
alignas(64) inline constexpr LaneBits kBits;

// 8- and 16-bit values lie in 32-bit slots whose upper bits mean nothing; floats and halves are
// kept as bits of their own.
template <class T>
using SlotOf =
    std::conditional_t<sizeof(T) == 8, T, std::conditional_t<sizeof(T) == 4, T, uint32_t>>;

template <class T>
ATP_INLINE T Get(const uint8_t* p, int l) {
  return static_cast<T>(reinterpret_cast<const SlotOf<T>*>(p)[l]);
}
template <class T>
ATP_INLINE void Put(uint8_t* p, int l, T value) {
  if constexpr (sizeof(T) >= 4) {
    reinterpret_cast<T*>(p)[l] = value;
  } else {
    reinterpret_cast<uint32_t*>(p)[l] = static_cast<uint32_t>(value);
  }
}
template <class T>
ATP_INLINE void PutMasked(uint8_t* p, int l, T value, uint32_t mask) {
  SlotOf<T>* slot = reinterpret_cast<SlotOf<T>*>(p) + l;
  if constexpr (sizeof(T) == 8) {
    *slot = (mask & kBits.wide[l]) != 0 ? static_cast<SlotOf<T>>(value) : *slot;
  } else {
    *slot = (mask & kBits.narrow[l]) != 0 ? static_cast<SlotOf<T>>(value) : *slot;
  }
}

ATP_INLINE uint8_t* At(const Warp& w, uint32_t offset) { return w.regs + offset; }
ATP_INLINE uint32_t& Pred(const Warp& w, uint32_t offset) {
  return *reinterpret_cast<uint32_t*>(w.regs + offset);
}
ATP_INLINE void SetPred(const Warp& w, uint32_t offset, uint32_t bits, uint32_t mask) {
  uint32_t& p = Pred(w, offset);
  p = (p & ~mask) | (bits & mask);
}

// Runs `f(lane) -> D` for all lanes and stores what is active.
template <class D, class F>
ATP_INLINE const Insn* Each(Warp& w, const Insn* i, F f) {
  uint8_t* d = At(w, i->r[0]);
  if (w.mask == kFullMask) {
    ATP_LANES(l) Put<D>(d, l, f(l));
  } else {
    uint32_t mask = w.mask;
    ATP_LANES(l) PutMasked<D>(d, l, f(l), mask);
  }
  return i + 1;
}

// Handlers made from a functor F with a static Do().
template <class F, class D, class A>
const Insn* Op1(Warp& w, const Insn* i) {
  const uint8_t* a = At(w, i->r[1]);
  return Each<D>(w, i, [=](int l) { return static_cast<D>(F::Do(Get<A>(a, l))); });
}
template <class F, class D, class A, class B>
const Insn* Op2(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]);
  return Each<D>(w, i, [=](int l) { return static_cast<D>(F::Do(Get<A>(a, l), Get<B>(b, l))); });
}
template <class F, class D, class A, class B, class C>
const Insn* Op3(Warp& w, const Insn* i) {
  const uint8_t *a = At(w, i->r[1]), *b = At(w, i->r[2]), *c = At(w, i->r[3]);
  return Each<D>(
      w, i, [=](int l) { return static_cast<D>(F::Do(Get<A>(a, l), Get<B>(b, l), Get<C>(c, l))); });
}

ATP_INLINE void AddSectors(Warp& w, uint64_t count) { w.sectors += count; }

// One bit per lane from 0 / -1 values.
uint32_t MoveMask(const int32_t* lanes);

}  // namespace atp::sim::exec::ATP_VARIANT
