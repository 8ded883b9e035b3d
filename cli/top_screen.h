// SPDX-License-Identifier: Apache-2.0
// What `atp top` draws: text that fits a terminal. Pure functions.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/jobs.h"

namespace atp::cli {

struct ScreenSize {
  size_t columns = 80, rows = 24;
};

// At most `rows` lines of at most `columns` characters, each ended by a newline but the last.
// Columns that matter less are left out where there is no room for them. `daemon`: null without
// one. What a program calls itself is shown without its control characters.
std::string TopScreen(const std::vector<Job>& jobs, const nlohmann::ordered_json& daemon,
                      const ScreenSize& size);

// The first `most` characters of UTF-8 text, with a dot for each that is none or cannot be shown.
std::string Printable(const std::string& text, size_t most);

}  // namespace atp::cli
