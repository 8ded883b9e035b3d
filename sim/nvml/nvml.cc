// SPDX-License-Identifier: Apache-2.0
// The entry points of libnvidia-ml.so.1 that are answered. Everything else that programs look up is
// in not_supported.def.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "sim/driver/identity.h"
#include "sim/nvml/cards.h"
#include "sim/nvml/nvml_api.h"

#define NVML_API extern "C" __attribute__((visibility("default"))) int

namespace nvml = atp::nvml;
using nvml::Card;
using nvml::Cards;
using nvml::Device;
using nvml::Use;

namespace {

Card* CardOf(Device device) {
  for (Card& card : Cards::Get().all()) {
    if (reinterpret_cast<Device>(&card) == device) return &card;
  }
  return nullptr;
}

// Runs `answer` with the card under the lock, when there is one.
template <class Answer>
int WithCard(Device device, Answer answer) {
  Cards& cards = Cards::Get();
  std::lock_guard lock(cards.mutex);
  if (!cards.started()) return nvml::kUninitialised;
  Card* card = CardOf(device);
  return card ? answer(*card) : nvml::kInvalidArgument;
}

template <class Answer>
int WithCards(Answer answer) {
  Cards& cards = Cards::Get();
  std::lock_guard lock(cards.mutex);
  return cards.started() ? answer(cards.all()) : nvml::kUninitialised;
}

int PutText(std::string_view text, char* out, unsigned length) {
  if (!out) return nvml::kInvalidArgument;
  if (text.size() + 1 > length) return nvml::kInsufficientSize;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = 0;
  return nvml::kSuccess;
}

template <class Matches>
int FindCard(Device* device, Matches matches) {
  return WithCards([&](std::vector<Card>& cards) -> int {
    if (!device) return nvml::kInvalidArgument;
    for (Card& card : cards) {
      if (!matches(card)) continue;
      *device = reinterpret_cast<Device>(&card);
      return nvml::kSuccess;
    }
    return nvml::kNotFound;
  });
}

// The driver that first came with each version of CUDA: "CUDA Toolkit Release Notes", table of
// toolkit and driver versions.
const char* DriverBranch(int version) {
  struct Branch {
    int version;
    const char* name;
  };
  static constexpr Branch kBranches[] = {
      {13000, "580.00"}, {12090, "575.00"}, {12080, "570.00"}, {12060, "560.00"}, {12050, "555.00"},
      {12040, "550.00"}, {12030, "545.00"}, {12020, "535.00"}, {12010, "530.00"}, {12000, "525.00"},
      {11080, "520.00"}, {11070, "515.00"}, {11060, "510.00"}, {11050, "495.00"}, {11040, "470.00"},
      {11030, "465.00"}, {11020, "460.00"}, {11010, "455.00"}, {11000, "450.00"}};
  for (const Branch& branch : kBranches) {
    if (version >= branch.version) return branch.name;
  }
  return "450.00";
}

// Processes with a context on the card.
template <class Record>
int Processes(Device device, unsigned* count, Record* records) {
  return WithCard(device, [&](Card& card) -> int {
    if (!count) return nvml::kInvalidArgument;
    const std::vector<atpSimProcess> processes = Cards::Get().ProcessesOn(card);
    const unsigned room = *count;
    *count = static_cast<unsigned>(processes.size());
    if (*count == 0) return nvml::kSuccess;
    if (room < *count) return nvml::kInsufficientSize;
    if (!records) return nvml::kInvalidArgument;
    for (const atpSimProcess& process : processes) {
      *records = Record{};
      records->pid = static_cast<unsigned>(process.process ? process.process : getpid());
      records->used_bytes = process.bytes;
      if constexpr (requires { records->gpu_instance; })
        records->gpu_instance = records->compute_instance = ~0u;  // the card is not divided
      ++records;
    }
    return nvml::kSuccess;
  });
}

int NoProcesses(Device device, unsigned* count) {
  return WithCard(device, [&](Card&) -> int {
    if (!count) return nvml::kInvalidArgument;
    *count = 0;
    return nvml::kSuccess;
  });
}

}  // namespace

NVML_API nvmlInitWithFlags(unsigned) {
  Cards& cards = Cards::Get();
  std::lock_guard lock(cards.mutex);
  return cards.Start() ? nvml::kSuccess : nvml::kUnknown;
}
NVML_API nvmlInit_v2() { return nvmlInitWithFlags(0); }
NVML_API nvmlInit() { return nvmlInitWithFlags(0); }

NVML_API nvmlShutdown() {
  Cards& cards = Cards::Get();
  std::lock_guard lock(cards.mutex);
  if (!cards.started()) return nvml::kUninitialised;
  cards.Stop();
  return nvml::kSuccess;
}

extern "C" __attribute__((visibility("default"))) const char* nvmlErrorString(int result) {
  switch (result) {
    case nvml::kSuccess:
      return "Success";
    case nvml::kUninitialised:
      return "Uninitialized";
    case nvml::kInvalidArgument:
      return "Invalid Argument";
    case nvml::kNotSupported:
      return "Not Supported";
    case nvml::kNotFound:
      return "Not Found";
    case nvml::kInsufficientSize:
      return "Insufficient Size";
    case nvml::kArgumentVersionMismatch:
      return "Argument Version Mismatch";
    default:
      return "Unknown Error";
  }
}

NVML_API nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return WithCards([&](std::vector<Card>&) {
    return PutText(DriverBranch(Cards::Get().driver_version()), version, length);
  });
}
NVML_API nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return WithCards([&](std::vector<Card>&) {
    const int cuda = Cards::Get().driver_version();
    return PutText(std::to_string(cuda / 1000) + "." + DriverBranch(cuda), version, length);
  });
}
NVML_API nvmlSystemGetCudaDriverVersion_v2(int* version) {
  return WithCards([&](std::vector<Card>&) -> int {
    if (!version) return nvml::kInvalidArgument;
    *version = Cards::Get().driver_version();
    return nvml::kSuccess;
  });
}
NVML_API nvmlSystemGetCudaDriverVersion(int* version) {
  return nvmlSystemGetCudaDriverVersion_v2(version);
}

NVML_API nvmlDeviceGetCount_v2(unsigned* count) {
  return WithCards([&](std::vector<Card>& cards) -> int {
    if (!count) return nvml::kInvalidArgument;
    *count = static_cast<unsigned>(cards.size());
    return nvml::kSuccess;
  });
}
NVML_API nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

NVML_API nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  const int result = FindCard(
      device, [&](const Card& card) { return static_cast<unsigned>(card.index) == index; });
  return result == nvml::kNotFound ? static_cast<int>(nvml::kInvalidArgument) : result;
}
NVML_API nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}
NVML_API nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  if (!uuid) return nvml::kInvalidArgument;
  return FindCard(device, [&](const Card& card) { return card.uuid == uuid; });
}
// The domain may be written with four or eight digits, and left out.
NVML_API nvmlDeviceGetHandleByPciBusId_v2(const char* text, Device* device) {
  unsigned domain = 0, bus = 0, slot = 0;
  if (!text) return nvml::kInvalidArgument;
  if (std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) != 3) {
    domain = 0;
    if (std::sscanf(text, "%x:%x", &bus, &slot) != 2) return nvml::kInvalidArgument;
  }
  return FindCard(device, [&](const Card& card) {
    return domain == 0 && slot == 0 && static_cast<int>(bus) == atp::sim::kFirstBus + card.index;
  });
}
NVML_API nvmlDeviceGetHandleByPciBusId(const char* text, Device* device) {
  return nvmlDeviceGetHandleByPciBusId_v2(text, device);
}

NVML_API nvmlDeviceGetIndex(Device device, unsigned* index) {
  return WithCard(device, [&](Card& card) -> int {
    if (!index) return nvml::kInvalidArgument;
    *index = static_cast<unsigned>(card.index);
    return nvml::kSuccess;
  });
}
NVML_API nvmlDeviceGetMinorNumber(Device device, unsigned* minor) {
  return nvmlDeviceGetIndex(device, minor);
}
NVML_API nvmlDeviceGetName(Device device, char* name, unsigned length) {
  return WithCard(device, [&](Card& card) { return PutText(card.name, name, length); });
}
NVML_API nvmlDeviceGetUUID(Device device, char* uuid, unsigned length) {
  return WithCard(device, [&](Card& card) { return PutText(card.uuid, uuid, length); });
}
NVML_API nvmlDeviceGetPciInfo_v3(Device device, nvml::Pci* pci) {
  return WithCard(device, [&](Card& card) -> int {
    if (!pci) return nvml::kInvalidArgument;
    *pci = nvml::Pci{};
    pci->bus = static_cast<unsigned>(atp::sim::kFirstBus + card.index);
    const std::string text = atp::sim::PciText(card.index);
    std::snprintf(pci->legacy_bus_id, sizeof pci->legacy_bus_id, "%s", text.c_str());
    std::snprintf(pci->bus_id, sizeof pci->bus_id, "0000%s", text.c_str());
    return nvml::kSuccess;
  });
}
NVML_API nvmlDeviceGetCudaComputeCapability(Device device, int* major, int* minor) {
  return WithCard(device, [&](Card& card) -> int {
    if (!major || !minor) return nvml::kInvalidArgument;
    *major = card.major;
    *minor = card.minor;
    return nvml::kSuccess;
  });
}

// Version 1 counts what the system keeps as used, version 2 tells it apart.
NVML_API nvmlDeviceGetMemoryInfo(Device device, nvml::Memory* memory) {
  return WithCard(device, [&](Card& card) -> int {
    if (!memory) return nvml::kInvalidArgument;
    const uint64_t free = Cards::Get().UseOf(card).free;
    *memory = {card.total, free, card.total - free};
    return nvml::kSuccess;
  });
}
NVML_API nvmlDeviceGetMemoryInfo_v2(Device device, nvml::MemoryV2* memory) {
  return WithCard(device, [&](Card& card) -> int {
    if (!memory) return nvml::kInvalidArgument;
    if (memory->version != nvml::VersionOf<nvml::MemoryV2>(2))
      return nvml::kArgumentVersionMismatch;
    const uint64_t free = Cards::Get().UseOf(card).free;
    *memory = {memory->version, card.total, card.reserved, free, card.total - card.reserved - free};
    return nvml::kSuccess;
  });
}

// Share of virtual time in which kernels ran since the question before. The share in which memory
// was read or written is not told apart from it: a model.
NVML_API nvmlDeviceGetUtilizationRates(Device device, nvml::Utilisation* utilisation) {
  return WithCard(device, [&](Card& card) -> int {
    if (!utilisation) return nvml::kInvalidArgument;
    const Use use = Cards::Get().UseOf(card);
    const uint64_t span = use.now_ns - card.last_now, busy = use.busy_ns - card.last_busy;
    const unsigned percent =
        span ? static_cast<unsigned>(std::min<uint64_t>(100, busy * 100 / span)) : 0;
    card.last_now = use.now_ns;
    card.last_busy = use.busy_ns;
    *utilisation = {percent, percent};
    return nvml::kSuccess;
  });
}

NVML_API nvmlDeviceGetComputeRunningProcesses(Device device, unsigned* count,
                                              nvml::ProcessV1* records) {
  return Processes(device, count, records);
}
NVML_API nvmlDeviceGetComputeRunningProcesses_v2(Device device, unsigned* count,
                                                 nvml::Process* records) {
  return Processes(device, count, records);
}
NVML_API nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned* count,
                                                 nvml::Process* records) {
  return Processes(device, count, records);
}
NVML_API nvmlDeviceGetGraphicsRunningProcesses(Device device, unsigned* count, nvml::ProcessV1*) {
  return NoProcesses(device, count);
}
NVML_API nvmlDeviceGetGraphicsRunningProcesses_v2(Device device, unsigned* count, nvml::Process*) {
  return NoProcesses(device, count);
}
NVML_API nvmlDeviceGetGraphicsRunningProcesses_v3(Device device, unsigned* count, nvml::Process*) {
  return NoProcesses(device, count);
}

// Reads and writes between two cards work (0), by PCI and not by NVLink; atomics and the rest do
// not (5, not supported).
NVML_API nvmlDeviceGetP2PStatus(Device first, Device second, int what, int* status) {
  return WithCards([&](std::vector<Card>&) -> int {
    if (!CardOf(first) || !CardOf(second) || first == second || !status)
      return nvml::kInvalidArgument;
    *status = what == 0 || what == 1 ? 0 : 5;
    return nvml::kSuccess;
  });
}
