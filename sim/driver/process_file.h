// SPDX-License-Identifier: Apache-2.0
// A file of another process, as the handles of IPC name it: opened through /proc, for as long as
// that process lives and may be looked into. Any thread.
#pragma once

#include <cstdint>

namespace atp::sim {

struct ProcessFile {
  char magic[8] = "ATP ipc";
  int64_t process = 0;
  int32_t file = -1;  // descriptor in that process
  int32_t unused = 0;
  uint64_t inode = 0;  // process numbers and descriptors are used again

  static ProcessFile OfThisProcess(int file);
  bool IsOne() const;  // the magic is right
  int Open() const;    // -1 when it is not there any more, or never was
};

}  // namespace atp::sim
