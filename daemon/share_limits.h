// SPDX-License-Identifier: Apache-2.0
// What one user's jobs may have at most of a card, as a setting says it. Pure but for the look-up
// of a user's name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "protocol/share_report.h"

namespace atp::daemon {

struct ShareLimits {
  uint64_t budget = 0;  // of each job, in bytes; 0 = no limit
  double weight = 0;    // of a job; 0 = no limit
  int priority = protocol::kMostPriority;
};

struct UserLimits {
  std::optional<uint32_t> user;  // none: everybody who has no limits by name
  ShareLimits limits;
};

// "NAME:budget=8GiB,weight=2,priority=0"; the name may be a number, or * for everybody. Throws
// std::invalid_argument in words.
UserLimits ParseUserLimits(const std::string& text);

}  // namespace atp::daemon
