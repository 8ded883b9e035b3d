// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/identity.h"

#include <cstdio>
#include <cstring>

namespace atp::sim {

// The card's number after a fixed text.
CUuuid CardUuid(int index) {
  CUuuid uuid{};
  std::memcpy(uuid.bytes, "ATP simulated", 13);
  uuid.bytes[15] = static_cast<char>(index);
  return uuid;
}

std::string UuidText(const CUuuid& uuid) {
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits;
  }
  return text;
}

std::string PciText(int index) {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", static_cast<unsigned>(kFirstBus + index));
  return text;
}

}  // namespace atp::sim
