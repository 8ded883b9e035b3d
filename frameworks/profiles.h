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

inline constexpr size_t kMostSet = 2, kMostDecisive = 3, kMostWords = 2;

struct Profile {
  const char* key = nullptr;     // as in ATP_FRAMEWORK=key
  const char* name = nullptr;    // as people write it
  const char* memory = nullptr;  // how it asks for memory, in words

  // How it is recognised; null: not in this way.
  const char* module = nullptr;   // what Python imports
  const char* program = nullptr;  // how the file names of its own programs begin
  // To be installed is enough, because where the program does not use it nothing reads what is set.
  bool if_installed = false;
  bool only_if_named = false;

  Variable set[kMostSet] = {};
  // Whoever has set one of these, or of the above, has decided about this framework's memory,
  const char* decisive[kMostDecisive] = {};
  // and so has the script with one of these words: limits that only the framework itself keeps.
  const char* words[kMostWords] = {};
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
