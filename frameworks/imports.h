// SPDX-License-Identifier: Apache-2.0
// What a Python command will run, as far as its own text shows it. Reads the one file that the
// command names; a file that cannot be read has no text.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace atp::frameworks {

// The packages that `text` imports at the start of a line, indented or not.
std::set<std::string> ImportsOf(std::string_view text);

// The text of `python script.py` and `python -c TEXT`; of `python -m PACKAGE` only the import.
std::string TextOfCommand(const std::vector<std::string>& command);

// A file of Python that is longer is data.
inline constexpr size_t kMostText = 1u << 20;

// The beginning of a regular file; of anything else nothing.
std::string ReadText(const std::string& path, size_t most = kMostText);

}  // namespace atp::frameworks
