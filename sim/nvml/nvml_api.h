// SPDX-License-Identifier: Apache-2.0
// The part of NVIDIA's management interface that the simulated machine answers: types, numbers and
// prototypes, as NVIDIA's "NVML API Reference Guide" gives them. Names without the nvml prefix of
// the original types, so that a test may include both. The interface is not part of the CUDA
// toolkit's compiler and headers, so that it is written down here.
#pragma once

namespace atp::nvml {

enum Return : int {
  kSuccess = 0,
  kUninitialised = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNotFound = 6,
  kInsufficientSize = 7,
  kUnknown = 999,
  kArgumentVersionMismatch = 25,
};

struct DeviceHandle;
using Device = DeviceHandle*;

struct Memory {
  unsigned long long total, free, used;
};
struct MemoryV2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
};
struct Utilisation {
  unsigned gpu, memory;  // per cent
};
struct ProcessV1 {
  unsigned pid;
  unsigned long long used_bytes;
};
struct Process {  // of versions 2 and 3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance, compute_instance;
};
struct Pci {  // of version 3
  char legacy_bus_id[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};

// A structure's version number: its size, and the version in the upper byte.
template <class T>
constexpr unsigned VersionOf(unsigned version) {
  return static_cast<unsigned>(sizeof(T)) | version << 24;
}

}  // namespace atp::nvml
