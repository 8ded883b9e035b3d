// SPDX-License-Identifier: Apache-2.0
// `atp plan`: what to move when, and how near to the bounds that comes. One thread.
#pragma once

#include <CLI/CLI.hpp>

namespace atp::cli {

void AddPlanCommand(CLI::App& app);

}  // namespace atp::cli
