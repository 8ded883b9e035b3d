// SPDX-License-Identifier: Apache-2.0
// Asks a CUDA driver, in a child process, whether it starts and what its cards are. In a child,
// because a driver changes the process that loads it, and the program that follows must find it
// untouched. What the driver prints goes to our stderr.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace atp::cli {

struct Card {
  std::string name;
  uint64_t bytes = 0;
  int major = 0, minor = 0;  // compute capability
  bool managed = false;      // has managed memory
  bool concurrent = false;   // host and device may use it at the same time
  bool coherent = false;     // host and device share page tables: the hardware moves memory
};

struct DriverProbe {
  bool loaded = false;  // the library was found and is a driver
  int status = 0;       // of cuInit (a CUresult); other values mean that it did not start
  int version = 0;      // as 12040; 0 = not told
  std::vector<Card> cards;
};

// `library` is a path or a name for the dynamic linker; `environment` is added to the child's.
DriverProbe ProbeDriver(const std::string& library,
                        const std::map<std::string, std::string>& environment);

}  // namespace atp::cli
