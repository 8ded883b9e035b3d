// SPDX-License-Identifier: Apache-2.0
// Which packages the environment of a Python interpreter has, told by looking where interpreters
// look: beside the interpreter (virtual environments, conda), Debian's folders, the user's own,
// PYTHONPATH. Starts nothing.
#pragma once

#include <string>
#include <vector>

namespace atp::frameworks {

using GetEnv = const char* (*)(const char*);

// The full path of a command: as it is if it has a slash, else from PATH; empty: not there.
std::string PathOf(const std::string& command, GetEnv getenv);

// The folders in which `interpreter` (a path, not resolved: a virtual environment is a link to
// its interpreter) finds packages.
std::vector<std::string> PackageFolders(const std::string& interpreter, GetEnv getenv);

bool HasPackage(const std::vector<std::string>& folders, const char* package);

}  // namespace atp::frameworks
