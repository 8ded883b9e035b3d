// SPDX-License-Identifier: Apache-2.0
// Which framework profiles a command has, and which variables they set. Looks at the command, the
// text that it names and the packages beside its interpreter; starts nothing, changes nothing.
#pragma once

#include <string>
#include <vector>

#include "frameworks/installed.h"
#include "frameworks/profiles.h"

namespace atp::frameworks {

enum class How {
  kNamed,      // by ATP_FRAMEWORK
  kCommand,    // the command is its program, or imports it
  kInstalled,  // it is there for the interpreter to import
};

struct Recognised {
  const Profile* profile;
  How how;
  std::vector<Variable> set;         // what this profile sets
  const char* decided_by = nullptr;  // by what the user has decided otherwise
};

// Whether such a file can have profiles at all: Python, or a program in the table. By its name.
bool CanHaveProfiles(const std::string& file);

// `file` is what is executed, `command` its arguments with its name in front. A script that names
// Python in its first line is judged by it. Nothing for files that cannot have profiles, whatever
// ATP_FRAMEWORK says, and when the shim or its profiles are switched off.
std::vector<Recognised> Recognise(const std::string& file, std::vector<std::string> command,
                                  GetEnv getenv);

}  // namespace atp::frameworks
