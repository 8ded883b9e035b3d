// SPDX-License-Identifier: Apache-2.0
// atp report: the page of a run, from a live process or from the record that a killed one left.
#pragma once

namespace CLI {
class App;
}

namespace atp::cli {

void AddReportCommand(CLI::App& app);

}  // namespace atp::cli
