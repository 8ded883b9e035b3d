// SPDX-License-Identifier: Apache-2.0
// Before main: sets the variables of the framework profiles (frameworks/profiles.h), because
// frameworks read them in static initialisers and Python copies the environment when it starts.
// A process that is neither Python nor a program of the table is left after a look at its name:
// some have an environment of their own (bash's setenv is not ready before its main). Prints
// nothing; any trouble means that nothing is set.
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include <exception>
#include <string>
#include <vector>

#include "frameworks/recognise.h"

namespace atp::shim {
namespace {

void SetVariables(const std::string& file, const std::vector<std::string>& command) {
  const auto lookup = [](const char* name) -> const char* { return getenv(name); };
  for (const auto& found : frameworks::Recognise(file, command, lookup)) {
    for (const auto& variable : found.set) setenv(variable.name, variable.value, 0);
  }
}

// glibc hands these to the constructors of libraries too.
__attribute__((constructor)) void BeforeMain(int count, char** arguments, char**) {
  char file[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", file, sizeof file - 1);
  if (length <= 0) return;
  file[length] = '\0';
  try {
    if (!frameworks::CanHaveProfiles(file)) return;
    SetVariables(file, std::vector<std::string>(arguments, arguments + count));
  } catch (const std::exception&) {
  }
}

}  // namespace
}  // namespace atp::shim
