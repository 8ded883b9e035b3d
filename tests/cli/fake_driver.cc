// SPDX-License-Identifier: Apache-2.0
// A CUDA driver with one card of 1 GiB, or what the environment says: FAKE_CUINIT (status),
// FAKE_CARDS (count).
#include <cstddef>
#include <cstdlib>

namespace {
int FromEnvironment(const char* name, int otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoi(value) : otherwise;
}
}  // namespace

extern "C" {
int cuInit(unsigned) { return FromEnvironment("FAKE_CUINIT", 0); }
int cuDeviceGetCount(int* count) {
  *count = FromEnvironment("FAKE_CARDS", 1);
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = size_t{1} << (30 + device);
  return 0;
}
}
