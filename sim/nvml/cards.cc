// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/cards.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>

#include "sim/driver/identity.h"
#include "sim/machine/costs.h"

namespace atp::nvml {
namespace {

// A function of the simulated driver, when the driver is in this process. Never loads it.
template <class Function>
Function* Find(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!driver) return nullptr;
  auto found = reinterpret_cast<Function*>(dlsym(driver, name));
  dlclose(driver);
  return found;
}

}  // namespace

Cards& Cards::Get() {
  static auto* cards = new Cards;  // never destroyed: threads may outlive main
  return *cards;
}

bool Cards::Start() {
  if (starts_ > 0) {
    ++starts_;
    return true;
  }
  settings_ = sim::Settings::FromEnvironment();
  std::string error = settings_.error;
  std::unique_ptr<sim::Machine> machine;
  if (error.empty()) machine = sim::Machine::Create(settings_.machine, &error);
  if (!machine) {
    std::fprintf(stderr, "libnvidia-ml (simulated): %s\n", error.c_str());
    return false;
  }
  sim::Costs costs = sim::ProfileCosts(sim::ProfileIndex(settings_.machine.profile));
  sim::ApplyOverrides(settings_.machine.overrides, &costs, &error);  // accepted by Create
  cards_.clear();
  for (int i = 0; i < settings_.machine.devices; ++i) {
    const sim::DeviceShape& shape = machine->Shape(i);
    Card card;
    card.index = i;
    card.name = shape.name;
    card.uuid = sim::UuidText(sim::CardUuid(i));
    card.major = shape.major;
    card.minor = shape.minor;
    card.reserved = static_cast<uint64_t>(costs.reserved);
    card.total = shape.total_bytes + card.reserved;
    cards_.push_back(std::move(card));
  }
  starts_ = 1;
  return true;
}

void Cards::Stop() {
  if (starts_ > 0) --starts_;
}

Use Cards::UseOf(const Card& card) const {
  Use use;
  use.free = card.total - card.reserved;
  atpSimCardUse said{};
  const auto ask = Find<decltype(atpSimCard)>("atpSimCard");
  if (!ask || !ask(static_cast<uint32_t>(card.index), &said)) return use;
  use.free = said.free_bytes;
  use.contexts = said.contexts;
  use.now_ns = said.now_ns;
  use.busy_ns = said.busy_ns;
  return use;
}

std::vector<atpSimProcess> Cards::ProcessesOn(const Card& card) const {
  const auto ask = Find<decltype(atpSimProcesses)>("atpSimProcesses");
  if (!ask) return {};
  std::vector<atpSimProcess> processes(16);
  const uint32_t count = ask(static_cast<uint32_t>(card.index), processes.data(),
                             static_cast<uint32_t>(processes.size()));
  processes.resize(std::min<size_t>(count, processes.size()));
  if (!processes.empty() && UseOf(card).contexts == 0) processes.erase(processes.begin());
  return processes;
}

}  // namespace atp::nvml
