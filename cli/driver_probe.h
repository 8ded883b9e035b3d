// SPDX-License-Identifier: Apache-2.0
// Asks a CUDA driver, in a child process, whether it starts and how large its cards are. In a
// child, because a driver changes the process that loads it, and the program that follows must find
// it untouched. What the driver prints goes to our stderr.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace atp::cli {

struct DriverProbe {
  bool loaded = false;  // the library was found and is a driver
  int status = 0;       // of cuInit (a CUresult); other values mean that it did not start
  std::vector<uint64_t> card_bytes;  // one per device
};

// `library` is a path or a name for the dynamic linker; `environment` is added to the child's.
DriverProbe ProbeDriver(const std::string& library,
                        const std::map<std::string, std::string>& environment);

}  // namespace atp::cli
