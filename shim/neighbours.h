// SPDX-License-Identifier: Apache-2.0
// Processes that use the same card and have nothing to do with us. Their memory pushes ours out,
// and the driver's number of free bytes does not show it: on a card that was full once, the driver
// keeps what has left for the blocks that it was of, and that number stays near 0. The management
// library knows what each process holds. Without it, or without its answer, there are none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "protocol/share_report.h"

namespace atp::shim {

// Every process on the card, this one too, from the management library, which is loaded at the
// first question. None: it is not there or does not answer, or its numbers are not those of
// processes as we see them (containers), or of one of them it does not know the memory. Makes
// system calls. One thread at a time.
std::optional<std::vector<protocol::CardProcess>> ProcessesOnCard(int ordinal);

// Of these, what those hold that have no shim. Jobs under the shim share by atpd, or by nobody.
uint64_t WithoutShim(const std::vector<protocol::CardProcess>& processes);

// What is taken to be others' memory, from looks at it one after the other: more of it counts at
// once, less of it when it has lasted, since managed memory of others comes and goes. Small changes
// count for nothing, because each makes new plans. Values; one thread at a time.
class NeighbourMemory {
 public:
  NeighbourMemory() = default;
  explicit NeighbourMemory(uint64_t card_bytes) : least_change_(card_bytes / 32) {}
  // Gives the new number.
  uint64_t Look(uint64_t bytes);
  // When first looked at: the budget that the process began with lacks it already.
  uint64_t at_start() const { return at_start_.value_or(0); }

 private:
  static constexpr int kLasting = 4;  // looks
  uint64_t least_change_ = 0;
  std::optional<uint64_t> at_start_;
  uint64_t counted_ = 0;
  uint64_t most_since_ = 0;  // of the looks that were all below what counts
  int below_ = 0;
};

}  // namespace atp::shim
