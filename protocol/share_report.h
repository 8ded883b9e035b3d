// SPDX-License-Identifier: Apache-2.0
// What a process tells atpd of its memory on one card, to be given a budget. Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace atp::protocol {

inline constexpr double kLeastWeight = 0.01, kMostWeight = 100;
inline constexpr int kMostPriority = 100;  // and as much below 0

// Memory of the card that a process holds.
struct CardProcess {
  uint64_t bytes = 0;
  int32_t process = 0;
  int32_t unused = 0;
  bool operator==(const CardProcess&) const = default;
};

struct ShareReport {
  std::string card;  // the UUID
  uint64_t card_bytes = 0;
  uint64_t free_bytes = 0;  // the driver's number
  uint64_t footprint = 0;   // all its memory there
  uint64_t held = 0;        // at most so much of it is on the card
  uint64_t least = 0;       // it cannot do with less; 0 = not known
  uint64_t most = 0;        // it must not have more; 0 = no limit
  double weight = 1;
  int32_t priority = 0;
  bool waits = false;  // it has nothing yet, and waits until it is given something
  std::string command;
  std::vector<CardProcess> processes;  // all on the card, itself too; empty: not known
  bool operator==(const ShareReport&) const = default;
};

std::vector<uint8_t> Write(const ShareReport& report);
// Takes foreign bytes. False with `error` in words.
bool Read(std::span<const uint8_t> bytes, ShareReport* report, std::string* error);

}  // namespace atp::protocol
