// SPDX-License-Identifier: Apache-2.0
// The cards that the stand-in management library shows: the machine that the ATP_SIM_* variables
// describe, and, when the simulated driver is in this process, what it has given out.
//
// A process with a simulated machine of its own is the only one on its cards; on a card that is
// shared (ATP_SIM_CARD) all are listed. CUDA_VISIBLE_DEVICES hides nothing here, as on a real
// machine. Under one lock.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/driver/settings.h"
#include "sim/host_symbols.h"

namespace atp::nvml {

struct Card {
  int index = 0;
  std::string name, uuid;
  int major = 0, minor = 0;
  uint64_t total = 0;                    // of the whole card
  uint64_t reserved = 0;                 // what programs never get
  uint64_t last_now = 0, last_busy = 0;  // at the last question for the utilisation
};

struct Use {
  uint64_t free = 0;
  unsigned contexts = 0;
  uint64_t now_ns = 0, busy_ns = 0;
};

class Cards {
 public:
  static Cards& Get();

  bool Start();  // false when the settings are wrong
  void Stop();
  bool started() const { return starts_ > 0; }

  std::vector<Card>& all() { return cards_; }
  Use UseOf(const Card& card) const;
  // Those that have a context on it; 0 is this process, and comes first.
  std::vector<atpSimProcess> ProcessesOn(const Card& card) const;
  int driver_version() const { return settings_.driver_version; }

  std::mutex mutex;

 private:
  int starts_ = 0;
  sim::Settings settings_;
  std::vector<Card> cards_;
};

}  // namespace atp::nvml
