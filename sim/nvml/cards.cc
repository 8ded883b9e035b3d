// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/cards.h"

#include <dlfcn.h>

#include <cstdio>

#include "sim/driver/identity.h"
#include "sim/machine/costs.h"

namespace atp::nvml {
namespace {

using CardUse = int (*)(uint32_t, atpSimCardUse*);

// The simulated driver's own answer, when the driver is in this process. Never loads it.
CardUse FindCardUse() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!driver) return nullptr;
  auto found = reinterpret_cast<CardUse>(dlsym(driver, "atpSimCard"));
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
  const CardUse ask = FindCardUse();
  if (!ask || !ask(static_cast<uint32_t>(card.index), &said)) return use;
  use.free = said.free_bytes;
  use.contexts = said.contexts;
  use.now_ns = said.now_ns;
  use.busy_ns = said.busy_ns;
  return use;
}

}  // namespace atp::nvml
