// SPDX-License-Identifier: Apache-2.0
// `atp convert`: a trace from one form into another. One thread.
#pragma once

#include <CLI/CLI.hpp>

namespace atp::cli {

void AddConvertCommand(CLI::App& app);

}  // namespace atp::cli
