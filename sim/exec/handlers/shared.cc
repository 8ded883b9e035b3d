// SPDX-License-Identifier: Apache-2.0
// ld and st of shared memory, the busiest handlers of tiled kernels. r[0..3] = data, r[5] =
// address.
#include <immintrin.h>

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

const Insn* BadShared(Warp& w, const Insn* i, const uint32_t* at, uint32_t bytes) {
  ATP_ACTIVE(l, w.mask) {
    uint64_t full = i->aux & kAuxWideAddress
                        ? Get<uint64_t>(At(w, i->r[5]), int(l)) + static_cast<uint64_t>(i->imm)
                        : at[l];
    if (full > w.block->shared_bytes || w.block->shared_bytes - full < bytes) {
      return FailAddress(w, i, ExecStatus::kIllegalAddress, "shared", full);
    }
    if ((full & (bytes - 1)) != 0)
      return FailAddress(w, i, ExecStatus::kMisalignedAddress, "shared", full);
  }
  return i + 1;
}

// Offsets of the lanes; false when an active lane may be out of bounds or misaligned.
template <uint32_t kBytes>
ATP_INLINE bool ReadOffsets(const Warp& w, const Insn* i, uint32_t* at) {
  uint32_t imm = static_cast<uint32_t>(i->imm), largest = 0, low_bits = 0, high = 0, mask = w.mask;
  const uint8_t* base = At(w, i->r[5]);
  if (i->aux & kAuxWideAddress) {
    for (int l = 0; l < kLanes; ++l) {
      uint64_t full = Get<uint64_t>(base, l) + static_cast<uint64_t>(i->imm);
      at[l] = static_cast<uint32_t>(full);
      high |= mask >> l & 1 ? static_cast<uint32_t>(full >> 32) : 0;
    }
  } else {
    ATP_LANES(l) at[l] = Get<uint32_t>(base, l) + imm;
  }
  if (mask == kFullMask) {
    for (int l = 0; l < kLanes; ++l) {
      largest = at[l] > largest ? at[l] : largest;
      low_bits |= at[l];
    }
  } else {
    for (int l = 0; l < kLanes; ++l) {
      uint32_t active = (mask & kBits.narrow[l]) != 0 ? at[l] : 0;
      largest = active > largest ? active : largest;
      low_bits |= active;
    }
  }
  uint32_t size = w.block->shared_bytes;
  return high == 0 && (low_bits & (kBytes - 1)) == 0 && size >= kBytes && largest <= size - kBytes;
}

// Whether sixteen offsets are all `start + lane * step`.
ATP_INLINE bool IsRun(const uint32_t* at, uint32_t start, uint32_t step) {
#if defined(__AVX512F__)
  __m512i steps =
      _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                         _mm512_set1_epi32(int(step)));
  return _mm512_cmpneq_epi32_mask(_mm512_loadu_si512(at),
                                  _mm512_add_epi32(_mm512_set1_epi32(int(start)), steps)) == 0;
#else
  __m128i expected = _mm_add_epi32(_mm_set1_epi32(int(start)),
                                   _mm_set_epi32(int(3 * step), int(2 * step), int(step), 0));
  __m128i same = _mm_set1_epi32(-1);
  for (int k = 0; k < 4; ++k) {
    same = _mm_and_si128(
        same,
        _mm_cmpeq_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 4 * k)), expected));
    expected = _mm_add_epi32(expected, _mm_set1_epi32(int(4 * step)));
  }
  return _mm_movemask_epi8(same) == 0xffff;
#endif
}

// Half a warp at a time: a tile 16 wide is consecutive or equal within each half. False when out of
// bounds or misaligned.
template <class T>
ATP_INLINE bool LoadHalf(const Block& block, const uint32_t* at, uint8_t* d, int first) {
  constexpr int kHalf = kLanes / 2;
  uint32_t start = at[first], size = block.shared_bytes;
  const uint8_t* from = block.shared + start;
  if (IsRun(at + first, start, sizeof(T))) {
    if (start % sizeof(T) != 0 || start > size || size - start < kHalf * sizeof(T)) return false;
    for (int l = 0; l < kHalf; ++l) Put<T>(d, first + l, Read<T>(from + l * sizeof(T)));
  } else if (IsRun(at + first, start, 0)) {
    if (start % sizeof(T) != 0 || start > size || size - start < sizeof(T)) return false;
    T value = Read<T>(from);
    for (int l = 0; l < kHalf; ++l) Put<T>(d, first + l, value);
  } else {
    uint32_t largest = 0, low_bits = 0;
    for (int l = 0; l < kHalf; ++l) {
      largest = at[first + l] > largest ? at[first + l] : largest;
      low_bits |= at[first + l];
    }
    if (low_bits % sizeof(T) != 0 || largest > size || size - largest < sizeof(T)) return false;
    for (int l = 0; l < kHalf; ++l) Put<T>(d, first + l, Read<T>(block.shared + at[first + l]));
  }
  return true;
}

template <class T, int kVector>
const Insn* Load(Warp& w, const Insn* i) {
  constexpr uint32_t kBytes = sizeof(T) * kVector;
  alignas(64) uint32_t at[kLanes];
  if (kVector == 1 && w.mask == kFullMask && !(i->aux & kAuxWideAddress)) {
    const uint8_t* base = At(w, i->r[5]);
    uint32_t imm = static_cast<uint32_t>(i->imm);
    ATP_LANES(l) at[l] = Get<uint32_t>(base, l) + imm;
    uint8_t* d = At(w, i->r[0]);
    if (LoadHalf<T>(*w.block, at, d, 0) && LoadHalf<T>(*w.block, at, d, kLanes / 2)) return i + 1;
    return BadShared(w, i, at, kBytes);
  }
  if (!ReadOffsets<kBytes>(w, i, at)) return BadShared(w, i, at, kBytes);
  const uint8_t* shared = w.block->shared;
  for (int k = 0; k < kVector; ++k) {
    uint8_t* d = At(w, i->r[k]);
    const uint8_t* from = shared + k * sizeof(T);
    if (w.mask == kFullMask) {
      for (int l = 0; l < kLanes; ++l) Put<T>(d, l, Read<T>(from + at[l]));
    } else {
      ATP_ACTIVE(l, w.mask) Put<T>(d, int(l), Read<T>(from + at[l]));
    }
  }
  return i + 1;
}

template <class T, int kVector>
const Insn* Store(Warp& w, const Insn* i) {
  constexpr uint32_t kBytes = sizeof(T) * kVector;
  alignas(64) uint32_t at[kLanes];
  if (!ReadOffsets<kBytes>(w, i, at)) return BadShared(w, i, at, kBytes);
  uint8_t* shared = w.block->shared;
  uint32_t not_next = 0;
  for (int l = 0; l < kLanes; ++l) not_next |= at[l] ^ (at[0] + static_cast<uint32_t>(l) * kBytes);
  for (int k = 0; k < kVector; ++k) {
    const uint8_t* s = At(w, i->r[k]);
    uint8_t* to = shared + k * sizeof(T);
    if (w.mask == kFullMask && not_next == 0) {
      to += at[0];
      ATP_LANES(l) Write<T>(to + l * kBytes, Get<T>(s, l));
    } else {
      ATP_ACTIVE(l, w.mask) Write<T>(to + at[l], Get<T>(s, int(l)));
    }
  }
  return i + 1;
}

template <int kVector>
Handler ByType(Type type, bool store) {
  switch (type) {
    case Type::kU8:
    case Type::kB8:
      return store ? Store<uint8_t, kVector> : Load<uint8_t, kVector>;
    case Type::kS8:
      return store ? Store<int8_t, kVector> : Load<int8_t, kVector>;
    case Type::kU16:
    case Type::kB16:
    case Type::kF16:
    case Type::kBf16:
      return store ? Store<uint16_t, kVector> : Load<uint16_t, kVector>;
    case Type::kS16:
      return store ? Store<int16_t, kVector> : Load<int16_t, kVector>;
    case Type::kU32:
    case Type::kB32:
    case Type::kS32:
    case Type::kF32:
    case Type::kF16x2:
    case Type::kBf16x2:
      return store ? Store<uint32_t, kVector> : Load<uint32_t, kVector>;
    case Type::kU64:
    case Type::kB64:
    case Type::kS64:
    case Type::kF64:
      return store ? Store<uint64_t, kVector> : Load<uint64_t, kVector>;
    default:
      return nullptr;
  }
}

}  // namespace

Handler PickShared(const ptx::Op& op, const Form&) {
  if ((op.base != Base::kLd && op.base != Base::kSt) || !IsSharedSpace(op) || op.type_count != 1)
    return nullptr;
  bool store = op.base == Base::kSt;
  switch (op.vector) {
    case 1:
      return ByType<1>(op.type(), store);
    case 2:
      return ByType<2>(op.type(), store);
    case 4:
      return ByType<4>(op.type(), store);
    default:
      return nullptr;
  }
}

}  // namespace atp::sim::exec::ATP_VARIANT
