// SPDX-License-Identifier: Apache-2.0
// A CUDA driver with one card of 1 GiB, or what the environment says: FAKE_CUINIT (status),
// FAKE_CARDS (count), FAKE_VERSION, FAKE_CONCURRENT, FAKE_COHERENT.
#include <cstddef>
#include <cstdio>
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
int cuDriverGetVersion(int* version) {
  *version = FromEnvironment("FAKE_VERSION", 12040);
  return 0;
}
int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "Fake card");
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 75:  // compute capability
      *value = 8;
      break;
    case 83:  // managed memory
      *value = 1;
      break;
    case 89:  // concurrent managed access
      *value = FromEnvironment("FAKE_CONCURRENT", 1);
      break;
    case 100:  // host page tables
      *value = FromEnvironment("FAKE_COHERENT", 0);
      break;
    default:
      *value = 0;
  }
  return 0;
}
}
