// SPDX-License-Identifier: Apache-2.0
// atp forget, export, import: what the daemon remembers, as its owner handles it.
#pragma once

namespace CLI {
class App;
}

namespace atp::cli {

void AddMemoryCommands(CLI::App& app);

}  // namespace atp::cli
