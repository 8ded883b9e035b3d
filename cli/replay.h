// SPDX-License-Identifier: Apache-2.0
// `atp replay`: runs traces under policies in the model of a machine. One thread.
#pragma once

#include <CLI/CLI.hpp>

namespace atp::cli {

void AddReplayCommand(CLI::App& app);

}  // namespace atp::cli
