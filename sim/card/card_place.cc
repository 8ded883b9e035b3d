// SPDX-License-Identifier: Apache-2.0
#include "sim/card/card_place.h"

#include <cstdlib>

namespace atp::sim {

bool ParseCardPlace(const std::string& text, const std::string& start, CardPlace* place) {
  const size_t comma = text.rfind(',');
  place->socket = text.substr(0, comma);
  char* end = nullptr;
  if (comma != std::string::npos) {
    const std::string number = text.substr(comma + 1);
    const long member = std::strtol(number.c_str(), &end, 10);
    if (number.empty() || *end != 0 || member < 0) return false;
    place->member = static_cast<int>(member);
  }
  if (start.empty()) return true;
  const double milliseconds = std::strtod(start.c_str(), &end);
  if (*end != 0 || !(milliseconds >= 0 && milliseconds < 1e9)) return false;
  place->start = static_cast<Time>(milliseconds * static_cast<double>(kMs));
  return true;
}

}  // namespace atp::sim
