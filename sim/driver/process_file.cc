// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/process_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

namespace atp::sim {
namespace {

uint64_t InodeOf(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

ProcessFile ProcessFile::OfThisProcess(int file) {
  ProcessFile result;
  result.process = getpid();
  result.file = file;
  result.inode = InodeOf(file);
  return result;
}

bool ProcessFile::IsOne() const {
  return std::memcmp(magic, ProcessFile().magic, sizeof magic) == 0;
}

int ProcessFile::Open() const {
  if (!IsOne()) return -1;
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%lld/fd/%d", static_cast<long long>(process), file);
  const int opened = open(path, O_RDWR | O_CLOEXEC);
  if (opened >= 0 && InodeOf(opened) == inode) return opened;
  if (opened >= 0) close(opened);
  return -1;
}

}  // namespace atp::sim
