// SPDX-License-Identifier: Apache-2.0
// What commands say to atpd. Throws CommandError: no daemon, no answer in time, or refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/message.h"

namespace atp::cli {

struct DaemonAnswer {
  uint64_t number = 0;
  std::vector<std::vector<uint8_t>> bodies;
};

// `socket`: empty = where shims look.
DaemonAnswer AskDaemon(const std::string& socket, const protocol::Message& message,
                       const std::vector<uint8_t>* body = nullptr);
bool DaemonListens(const std::string& socket);

}  // namespace atp::cli
