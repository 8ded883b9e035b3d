// SPDX-License-Identifier: Apache-2.0
// Which frameworks a command will import, told from the command and the Python text that it names,
// before anything runs. Reads that one file; no errors, a file that cannot be read imports nothing.
#pragma once

#include <string>
#include <vector>

namespace atp::cli {

struct Framework {
  const char* module;  // what Python imports
  const char* name;
  const char* memory;  // how it asks for memory, in words (docs/frameworks.md has the evidence)
};

// Those that `text` imports at the start of a line, indented or not; each once, in the table's
// order.
std::vector<Framework> FrameworksInText(const std::string& text);

// Those of a command: `python script.py`, `python -c TEXT`, `python -m PACKAGE`, or a script that
// names Python in its first line.
std::vector<Framework> FrameworksOf(const std::string& file,
                                    const std::vector<std::string>& command);

}  // namespace atp::cli
