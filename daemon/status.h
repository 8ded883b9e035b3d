// SPDX-License-Identifier: Apache-2.0
// What the daemon says of itself and of what it remembers, as JSON (docs/daemon.md names the keys).
#pragma once

#include <cstdint>
#include <string>

#include "daemon/store.h"

namespace atp::daemon {

// Workloads are those of `user`; figures of the store are of all users.
std::string StatusJson(Store* store, uint32_t user, uint64_t refused);

}  // namespace atp::daemon
