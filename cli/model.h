// SPDX-License-Identifier: Apache-2.0
// `atp model`: what more or less device memory would bring. One thread.
#pragma once

#include <CLI/CLI.hpp>

namespace atp::cli {

void AddModelCommand(CLI::App& app);

}  // namespace atp::cli
