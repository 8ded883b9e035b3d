// SPDX-License-Identifier: Apache-2.0
// THE table of framework profiles (profiles.cc): how a framework is recognised, how it asks for
// memory, and which of its documented variables are set where the user has decided nothing. Never
// one that takes a feature away: such a profile applies only where ATP_FRAMEWORK names it.
// docs/frameworks.md has the evidence for each row. Constant data; any thread.
#pragma once

#include <cstddef>
#include <span>

namespace atp::frameworks {

struct Variable {
  const char* name = nullptr;
  const char* value = nullptr;
};

inline constexpr size_t kMostSet = 2, kMostDecisive = 3;

struct Profile {
  const char* key;   // as in ATP_FRAMEWORK=key
  const char* name;  // as people write it
  // How it is recognised; null: not in this way.
  const char* module;   // what Python imports
  const char* program;  // how the file names of its own programs begin
  // What it costs where the program turns out not to use the framework: nothing, so that being
  // installed is enough; otherwise the command itself must show it.
  bool if_installed;
  bool only_if_named;
  Variable set[kMostSet];
  // Whoever has set one of these, or of the above, has decided about this framework's memory.
  const char* decisive[kMostDecisive];
  const char* memory;  // how it asks for memory, in words
};

// In the order in which they are tried: the first to set a variable wins.
std::span<const Profile> Profiles();

// Whether `text` is a value of ATP_FRAMEWORK: auto, off (or what else means off), or keys
// separated by commas.
bool IsFrameworkSetting(const char* text);
bool IsOff(const char* text);  // as everywhere: 0, off, false, no, empty
// Whether the list `keys` names this one.
bool Names(const char* keys, const Profile& profile);

}  // namespace atp::frameworks
