// SPDX-License-Identifier: Apache-2.0
// What the daemon says of itself and of what it remembers, as JSON (docs/daemon.md names the keys).
#pragma once

#include <cstdint>
#include <string>

#include "daemon/share_book.h"
#include "daemon/store.h"
#include "daemon/tuning.h"

namespace atp::daemon {

// Workloads are those of `user`; figures of the store are of all users.
// `tuning`, `book`: null = there is none.
std::string StatusJson(Store* store, uint32_t user, uint64_t refused, const Tuning* tuning,
                       ShareBook* book);

// The same figures, without the workloads, in Prometheus's text format (docs/metrics.md).
struct ServerFigures {
  uint64_t accepted = 0, served = 0, dropped = 0, unanswered = 0, refused = 0, connections = 0;
  uint64_t searches = 0, offered = 0;
};
std::string MetricsText(Store* store, const ServerFigures& server);

}  // namespace atp::daemon
