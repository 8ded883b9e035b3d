// SPDX-License-Identifier: Apache-2.0
// atp calibrate: measures a machine and writes the machine file (policy/machine_json.h).
#pragma once

namespace CLI {
class App;
}

namespace atp::cli {

void AddCalibrateCommand(CLI::App& app);

}  // namespace atp::cli
