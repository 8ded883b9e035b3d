// SPDX-License-Identifier: Apache-2.0
#include "cli/machine_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "cli/error.h"
#include "cli/trace_input.h"

namespace atp::cli {

policy::MeasuredMachine ReadMachineFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw CommandError(kExitUnreadable, path + ": " + std::strerror(errno));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  policy::MeasuredMachine machine;
  std::string error;
  if (!policy::ReadMachine(text, &machine, &error)) {
    throw CommandError(kExitUnreadable, path + ": not a machine file: " + error);
  }
  return machine;
}

}  // namespace atp::cli
