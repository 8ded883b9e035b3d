// SPDX-License-Identifier: Apache-2.0
// atp status: which processes run under the shim, and what the daemon remembers.
#pragma once

namespace CLI {
class App;
}

namespace atp::cli {

void AddStatusCommand(CLI::App& app);

}  // namespace atp::cli
