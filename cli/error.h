// SPDX-License-Identifier: Apache-2.0
// What a command throws when it cannot go on: main.cc prints "atp COMMAND: message" and ends with
// the code. The message names the value that is wrong and the remedy.
#pragma once

#include <stdexcept>
#include <string>

namespace atp::cli {

class CommandError : public std::runtime_error {
 public:
  CommandError(int exit_code, const std::string& message)
      : std::runtime_error(message), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace atp::cli
