// SPDX-License-Identifier: Apache-2.0
// `atp generate`: synthetic traces. One thread.
#pragma once

#include <CLI/CLI.hpp>

namespace atp::cli {

void AddGenerateCommand(CLI::App& app);

}  // namespace atp::cli
