// SPDX-License-Identifier: Apache-2.0
// Where the card is that a program shares with others (ATP_SIM_CARD, ATP_SIM_START).
#pragma once

#include <string>

#include "sim/machine/machine.h"

namespace atp::sim {

struct CardPlace {
  std::string socket;  // empty: the program has a machine of its own
  int member = -1;     // its number, -1 = in the order in which they come
  Time start = 0;      // of the program's first call, in virtual time
};
// "SOCKET" or "SOCKET,NUMBER"; `start` in milliseconds, empty = 0. False: malformed.
bool ParseCardPlace(const std::string& text, const std::string& start, CardPlace* place);

}  // namespace atp::sim
