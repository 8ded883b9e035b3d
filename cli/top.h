// SPDX-License-Identifier: Apache-2.0
// atp top: the running jobs, again and again.
#pragma once

namespace CLI {
class App;
}

namespace atp::cli {

void AddTopCommand(CLI::App& app);

}  // namespace atp::cli
