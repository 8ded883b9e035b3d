// SPDX-License-Identifier: Apache-2.0
// A block's pattern: a tag in its first and its last word, and in each word at a multiple of 4 KiB.
// Two blocks that overlap, or one that follows another too early, spoil each other's.

constexpr unsigned long long kStep = 4096;

__device__ unsigned long long Sample(unsigned long long begin, unsigned long long end,
                                     unsigned index) {
  if (index == 0) return begin;
  if (index == 1) return end - 4;
  const unsigned long long at = (begin + kStep - 1) / kStep * kStep + (index - 2) * kStep;
  return at < end ? at : 0;
}

extern "C" __global__ void Mark(unsigned long long begin, unsigned long long bytes, unsigned tag) {
  for (unsigned i = threadIdx.x;; i += blockDim.x) {
    const unsigned long long at = Sample(begin, begin + bytes, i);
    if (at == 0) return;
    *reinterpret_cast<unsigned*>(at) = tag;
  }
}

extern "C" __global__ void Verify(unsigned long long begin, unsigned long long bytes, unsigned tag,
                                  unsigned* wrong) {
  for (unsigned i = threadIdx.x;; i += blockDim.x) {
    const unsigned long long at = Sample(begin, begin + bytes, i);
    if (at == 0) return;
    if (*reinterpret_cast<unsigned*>(at) != tag) atomicAdd(wrong, 1u);
  }
}
