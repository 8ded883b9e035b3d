// SPDX-License-Identifier: Apache-2.0
#include "shim/neighbours.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shim/lookup.h"
#include "shim/reentry.h"
#include "shim/resolve.h"
#include "shim/settings.h"

namespace atp::shim {
namespace {

// Names, types and numbers as in NVIDIA's "NVML API Reference Guide".
using NvmlDevice = void*;
struct NvmlProcess {  // of versions 2 and 3
  unsigned int pid;
  unsigned long long used_bytes;
  unsigned int gpu_instance, compute_instance;
};
constexpr int kSuccess = 0;
constexpr unsigned long long kNotAvailable = ~0ull;
constexpr unsigned int kMostProcesses = 256;

struct Library {
  int (*init)() = nullptr;
  int (*by_bus)(const char*, NvmlDevice*) = nullptr;
  int (*processes)(NvmlDevice, unsigned int*, NvmlProcess*) = nullptr;
  bool ready = false;
};

template <typename Function>
void Find(Function** function, void* handle, const char* name) {
  *function = reinterpret_cast<Function*>(RealDlsym(handle, name));
}

// Counts who initialises it, so that the program's own use of it does not notice; stays loaded.
Library Load() {
  Library library;
  void* handle = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (handle == nullptr) {
    dlerror();
    return library;
  }
  Find(&library.init, handle, "nvmlInit_v2");
  Find(&library.by_bus, handle, "nvmlDeviceGetHandleByPciBusId_v2");
  Find(&library.processes, handle, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (library.processes == nullptr)
    Find(&library.processes, handle, "nvmlDeviceGetComputeRunningProcesses_v2");
  library.ready = library.init != nullptr && library.by_bus != nullptr &&
                  library.processes != nullptr && library.init() == kSuccess;
  return library;
}

// It counts devices in an order of its own.
NvmlDevice DeviceOf(int ordinal, const Library& library) {
  static NvmlDevice known[kMaxDevices];
  if (ordinal < 0 || ordinal >= kMaxDevices) return nullptr;
  char bus[32] = "";
  NvmlDevice& device = known[ordinal];
  if (device == nullptr && real().cuDeviceGetPCIBusId != nullptr &&
      real().cuDeviceGetPCIBusId(bus, sizeof bus, ordinal) == CUDA_SUCCESS &&
      library.by_bus(bus, &device) != kSuccess) {
    device = nullptr;
  }
  return device;
}

bool HasShim(int process) {
  char path[40];
  snprintf(path, sizeof path, "/proc/%d/maps", process);
  FILE* file = fopen(path, "re");
  if (file == nullptr) return false;
  char* line = nullptr;
  size_t room = 0;
  bool found = false;
  while (!found && getline(&line, &room, file) > 0) found = strstr(line, "/libatpshim") != nullptr;
  free(line);
  fclose(file);
  return found;
}

}  // namespace

std::optional<std::vector<protocol::CardProcess>> ProcessesOnCard(int ordinal) {
  const Reentry guard;
  static const Library library = Load();
  NvmlDevice device = library.ready ? DeviceOf(ordinal, library) : nullptr;
  if (device == nullptr) return std::nullopt;
  std::vector<NvmlProcess> rows(kMostProcesses);
  unsigned int count = kMostProcesses;
  if (library.processes(device, &count, rows.data()) != kSuccess || count > kMostProcesses)
    return std::nullopt;
  rows.resize(count);
  const auto self = std::find_if(rows.begin(), rows.end(), [](const NvmlProcess& row) {
    return row.pid == static_cast<unsigned int>(getpid());
  });
  if (self == rows.end()) return std::nullopt;
  std::vector<protocol::CardProcess> processes;
  for (const NvmlProcess& row : rows) {
    // Instances of a divided card have memory of their own.
    if (row.gpu_instance != self->gpu_instance) continue;
    if (row.used_bytes == kNotAvailable) return std::nullopt;
    processes.push_back({row.used_bytes, static_cast<int32_t>(row.pid), 0});
  }
  return processes;
}

uint64_t WithoutShim(const std::vector<protocol::CardProcess>& processes) {
  // Those looked at already; numbers are given out again only after very many others.
  static std::vector<std::pair<int32_t, bool>> known;
  std::vector<std::pair<int32_t, bool>> seen;
  uint64_t bytes = 0;
  for (const protocol::CardProcess& each : processes) {
    if (each.process == getpid()) continue;
    const auto at = std::find_if(known.begin(), known.end(),
                                 [&](const auto& one) { return one.first == each.process; });
    const bool shim = at != known.end() ? at->second : HasShim(each.process);
    seen.push_back({each.process, shim});
    if (!shim) bytes += each.bytes;
  }
  known = std::move(seen);
  return bytes;
}

uint64_t NeighbourMemory::Look(uint64_t bytes) {
  if (!at_start_) return *(at_start_ = counted_ = bytes);
  const auto differ = [](uint64_t a, uint64_t b) { return std::max(a, b) - std::min(a, b); };
  // As it was is as it was, to the byte: the budget comes back whole.
  if (differ(bytes, *at_start_) < least_change_) bytes = *at_start_;
  const bool small = bytes != *at_start_ && differ(bytes, counted_) < least_change_;
  if (bytes >= counted_ || small) {
    below_ = 0;
    most_since_ = 0;
    return counted_ = small ? counted_ : bytes;
  }
  most_since_ = std::max(most_since_, bytes);
  if (++below_ < kLasting) return counted_;
  counted_ = most_since_;
  below_ = 0;
  most_since_ = 0;
  return counted_;
}

}  // namespace atp::shim
