// SPDX-License-Identifier: Apache-2.0
// atp budget: the most that a running job may have of its card.
#pragma once

namespace CLI {
class App;
}

namespace atp::cli {

void AddBudgetCommand(CLI::App& app);

}  // namespace atp::cli
