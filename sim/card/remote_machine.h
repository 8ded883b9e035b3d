// SPDX-License-Identifier: Apache-2.0
// A Machine whose card is held by another process (simcard) and shared with other programs. Each
// call is a question to it and waits for the program's turn in virtual time. Under the driver's
// lock, like any Machine. When the other process is gone, the program ends: it has no card any
// more, as after a bus error.
#pragma once

#include <memory>
#include <string>

#include "sim/card/card_place.h"
#include "sim/machine/machine.h"

namespace atp::sim {

// Null with `error`: nobody is there, or the card is another one than `config` says.
std::unique_ptr<Machine> JoinCard(const CardPlace& place, const MachineConfig& config,
                                  std::string* error);

}  // namespace atp::sim
