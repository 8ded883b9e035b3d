// SPDX-License-Identifier: Apache-2.0
// The stand-in management library: identity, memory in both versions, processes, utilisation, and
// that its numbers agree with the driver's.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sim/nvml/nvml_api.h"
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Library {
 public:
  Library() : handle_(dlopen(ATP_TEST_NVML, RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  template <class... Arguments>
  int Call(const char* name, Arguments... arguments) const {
    auto* function = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle_, name));
    EXPECT_NE(function, nullptr) << name;
    return function ? function(arguments...) : -1;
  }
  std::string Text(const char* name, nvml::Device device) const {
    char text[96] = "";
    EXPECT_EQ(Call(name, device, &text[0], static_cast<unsigned>(sizeof text)), nvml::kSuccess);
    return text;
  }
  bool Has(const char* name) const { return dlsym(handle_, name) != nullptr; }

 private:
  void* handle_;
};

nvml::Device First(const Library& library) {
  nvml::Device device = nullptr;
  EXPECT_EQ(library.Call("nvmlInit_v2"), nvml::kSuccess);
  EXPECT_EQ(library.Call("nvmlDeviceGetHandleByIndex_v2", 0u, &device), nvml::kSuccess);
  return device;
}

TEST(Nvml, NothingWorksBeforeInitNorAfterTheLastShutdown) {
  const Library library;
  unsigned count = 0;
  EXPECT_EQ(library.Call("nvmlDeviceGetCount_v2", &count), nvml::kUninitialised);
  EXPECT_EQ(library.Call("nvmlShutdown"), nvml::kUninitialised);
  EXPECT_EQ(library.Call("nvmlInit"), nvml::kSuccess);
  EXPECT_EQ(library.Call("nvmlInit_v2"), nvml::kSuccess);
  EXPECT_EQ(library.Call("nvmlShutdown"), nvml::kSuccess);
  EXPECT_EQ(library.Call("nvmlDeviceGetCount_v2", &count), nvml::kSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(library.Call("nvmlShutdown"), nvml::kSuccess);
  EXPECT_EQ(library.Call("nvmlDeviceGetCount_v2", &count), nvml::kUninitialised);
}

TEST(Nvml, CardsAreTheDriversWhateverIsVisible) {
  RunWith({{"ATP_SIM_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "2"}, {"ATP_SIM_GPU", "h100"}}, [] {
    const Library library;
    ASSERT_EQ(library.Call("nvmlInit_v2"), nvml::kSuccess);
    unsigned count = 0;
    ASSERT_EQ(library.Call("nvmlDeviceGetCount_v2", &count), nvml::kSuccess);
    EXPECT_EQ(count, 3u);
    ASSERT_CUDA(cuInit(0));
    char name[100], bus[32];
    CUuuid uuid;
    ASSERT_CUDA(cuDeviceGetName(name, sizeof name, 0));
    ASSERT_CUDA(cuDeviceGetPCIBusId(bus, sizeof bus, 0));
    ASSERT_CUDA(cuDeviceGetUuid(&uuid, 0));
    nvml::Device by_bus = nullptr, by_uuid = nullptr, by_index = nullptr;
    EXPECT_EQ(library.Call("nvmlDeviceGetHandleByPciBusId_v2", &bus[0], &by_bus), nvml::kSuccess);
    EXPECT_EQ(library.Call("nvmlDeviceGetHandleByIndex_v2", 2u, &by_index), nvml::kSuccess);
    const std::string text = library.Text("nvmlDeviceGetUUID", by_bus);
    EXPECT_EQ(library.Call("nvmlDeviceGetHandleByUUID", text.c_str(), &by_uuid), nvml::kSuccess);
    EXPECT_EQ(by_bus, by_index);
    EXPECT_EQ(by_bus, by_uuid);
    EXPECT_EQ(library.Text("nvmlDeviceGetName", by_bus), name);
    EXPECT_EQ(text.substr(text.size() - 2), "02");
    int major = 0, minor = -1;
    EXPECT_EQ(library.Call("nvmlDeviceGetCudaComputeCapability", by_bus, &major, &minor),
              nvml::kSuccess);
    EXPECT_EQ(major, 9);
    EXPECT_EQ(minor, 0);
    nvml::Pci pci{};
    EXPECT_EQ(library.Call("nvmlDeviceGetPciInfo_v3", by_bus, &pci), nvml::kSuccess);
    EXPECT_STREQ(pci.legacy_bus_id, bus);
  });
}

TEST(Nvml, WhatIsNotThereIsAnError) {
  const Library library;
  const nvml::Device device = First(library);
  nvml::Device other = nullptr;
  char small[4];
  EXPECT_EQ(library.Call("nvmlDeviceGetHandleByIndex_v2", 7u, &other), nvml::kInvalidArgument);
  EXPECT_EQ(library.Call("nvmlDeviceGetHandleByUUID", "GPU-none", &other), nvml::kNotFound);
  EXPECT_EQ(library.Call("nvmlDeviceGetHandleByPciBusId_v2", "0000:99:00.0", &other),
            nvml::kNotFound);
  EXPECT_EQ(library.Call("nvmlDeviceGetName", device, &small[0], 4u), nvml::kInsufficientSize);
  EXPECT_EQ(library.Call("nvmlDeviceGetName", nvml::Device{}, &small[0], 4u),
            nvml::kInvalidArgument);
  unsigned temperature = 0;
  EXPECT_EQ(library.Call("nvmlDeviceGetTemperature", device, 0, &temperature), nvml::kNotSupported);
  EXPECT_FALSE(library.Has("nvmlVgpuInstanceGetLicenseInfo_v2"));
  EXPECT_EQ(library.Call("nvmlShutdown"), nvml::kSuccess);
}

TEST(Nvml, MemoryWithoutADriverIsAllFree) {
  RunWith({{"ATP_SIM_GPU", "a100-40g"}}, [] {
    const Library library;
    const nvml::Device device = First(library);
    nvml::Memory memory{};
    nvml::MemoryV2 second{};
    ASSERT_EQ(library.Call("nvmlDeviceGetMemoryInfo", device, &memory), nvml::kSuccess);
    EXPECT_EQ(memory.total, 40ull << 30);
    EXPECT_EQ(memory.used, 700ull << 20) << "what the system keeps";
    EXPECT_EQ(library.Call("nvmlDeviceGetMemoryInfo_v2", device, &second),
              nvml::kArgumentVersionMismatch);
    second.version = nvml::VersionOf<nvml::MemoryV2>(2);
    ASSERT_EQ(library.Call("nvmlDeviceGetMemoryInfo_v2", device, &second), nvml::kSuccess);
    EXPECT_EQ(second.total, memory.total);
    EXPECT_EQ(second.reserved, 700ull << 20);
    EXPECT_EQ(second.used, 0u);
    EXPECT_EQ(second.free, memory.free);
    unsigned count = 5;
    EXPECT_EQ(library.Call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count,
                           static_cast<nvml::Process*>(nullptr)),
              nvml::kSuccess);
    EXPECT_EQ(count, 0u);
  });
}

class NvmlWithDriver : public DriverTest {};

TEST_F(NvmlWithDriver, MemoryAndProcessesAgreeWithTheDriver) {
  const Library library;
  const nvml::Device device = First(library);
  const CUdeviceptr buffer = Alloc(size_t{32} << 20);
  size_t free = 0, total = 0;
  ASSERT_CUDA(cuMemGetInfo(&free, &total));
  nvml::MemoryV2 memory{};
  memory.version = nvml::VersionOf<nvml::MemoryV2>(2);
  ASSERT_EQ(library.Call("nvmlDeviceGetMemoryInfo_v2", device, &memory), nvml::kSuccess);
  EXPECT_EQ(memory.free, free);
  EXPECT_EQ(memory.total, total + memory.reserved);
  EXPECT_EQ(memory.used, total - free);
  EXPECT_GE(memory.used, 32u << 20);
  unsigned count = 0;
  EXPECT_EQ(library.Call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count,
                         static_cast<nvml::Process*>(nullptr)),
            nvml::kInsufficientSize);
  ASSERT_EQ(count, 1u);
  nvml::Process process{};
  EXPECT_EQ(library.Call("nvmlDeviceGetComputeRunningProcesses_v3", device, &count, &process),
            nvml::kSuccess);
  EXPECT_EQ(process.pid, static_cast<unsigned>(getpid()));
  EXPECT_EQ(process.used_bytes, memory.used);
  nvml::ProcessV1 old{};
  EXPECT_EQ(library.Call("nvmlDeviceGetComputeRunningProcesses", device, &count, &old),
            nvml::kSuccess);
  EXPECT_EQ(old.used_bytes, memory.used);
  ASSERT_CUDA(cuMemFree(buffer));
  EXPECT_EQ(library.Call("nvmlShutdown"), nvml::kSuccess);
}

TEST_F(NvmlWithDriver, UtilisationIsTheShareOfVirtualTimeInKernels) {
  const Library library;
  const nvml::Device device = First(library);
  const int count = 1 << 22;
  const CUdeviceptr buffer = Alloc(count * sizeof(int));
  nvml::Utilisation busy{}, idle{};
  ASSERT_CUDA(Launch("Increment", count, nullptr, buffer, count));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(library.Call("nvmlDeviceGetUtilizationRates", device, &busy), nvml::kSuccess);
  for (int i = 0; i < 8; ++i) ASSERT_CUDA(Launch("Increment", count, nullptr, buffer, count));
  ASSERT_CUDA(cuCtxSynchronize());
  EXPECT_EQ(library.Call("nvmlDeviceGetUtilizationRates", device, &busy), nvml::kSuccess);
  EXPECT_GE(busy.gpu, 90u);
  EXPECT_LE(busy.gpu, 100u);
  for (int i = 0; i < 8; ++i) Alloc(1 << 20);
  EXPECT_EQ(library.Call("nvmlDeviceGetUtilizationRates", device, &idle), nvml::kSuccess);
  EXPECT_EQ(idle.gpu, 0u);
  EXPECT_EQ(library.Call("nvmlShutdown"), nvml::kSuccess);
}

TEST(Nvml, VersionsFollowTheDriver) {
  RunWith({{"ATP_SIM_DRIVER", "12040"}}, [] {
    const Library library;
    First(library);
    int version = 0;
    char text[80];
    EXPECT_EQ(library.Call("nvmlSystemGetCudaDriverVersion_v2", &version), nvml::kSuccess);
    EXPECT_EQ(version, 12040);
    EXPECT_EQ(library.Call("nvmlSystemGetDriverVersion", &text[0], 80u), nvml::kSuccess);
    EXPECT_STREQ(text, "550.00");
    EXPECT_EQ(library.Call("nvmlSystemGetNVMLVersion", &text[0], 80u), nvml::kSuccess);
    EXPECT_STREQ(text, "12.550.00");
  });
}

TEST(Nvml, PeersReadAndWriteByPci) {
  RunWith({{"ATP_SIM_DEVICES", "2"}}, [] {
    const Library library;
    const nvml::Device first = First(library);
    nvml::Device second = nullptr;
    int status = -1;
    ASSERT_EQ(library.Call("nvmlDeviceGetHandleByIndex_v2", 1u, &second), nvml::kSuccess);
    EXPECT_EQ(library.Call("nvmlDeviceGetP2PStatus", first, second, 0, &status), nvml::kSuccess);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(library.Call("nvmlDeviceGetP2PStatus", first, second, 2, &status), nvml::kSuccess);
    EXPECT_EQ(status, 5) << "no NVLink";
  });
}

}  // namespace
}  // namespace atp::sim
