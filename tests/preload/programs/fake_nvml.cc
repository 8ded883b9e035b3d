// SPDX-License-Identifier: Apache-2.0
// A management library with one device, on bus 0000:00:00.0 or whatever is asked first, of 7 GiB:
// numbers that no simulated card has, so that one sees who answers.
#include <cstdio>

namespace {
int the_device;
constexpr unsigned long long kGiB = 1ull << 30;
struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned int version;
  unsigned long long total, reserved, free, used;
};
}  // namespace

extern "C" {
int nvmlDeviceGetHandleByPciBusId_v2(const char*, void** device) {
  *device = &the_device;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void*, Memory* memory) {
  *memory = {7 * kGiB, 5 * kGiB, 2 * kGiB};
  return 0;
}
int nvmlDeviceGetMemoryInfo_v2(void*, MemoryV2* memory) {
  *memory = {memory->version, 7 * kGiB, kGiB / 2, 5 * kGiB, 3 * kGiB / 2};
  return 0;
}
int nvmlDeviceGetIndex(void*, unsigned* index) {
  *index = 0;
  return 0;
}
}
