// SPDX-License-Identifier: Apache-2.0
#include "shim/host_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "shim/settings.h"

namespace atp::shim {
namespace {

bool ReadFile(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, out, size - 1);
  close(fd);
  if (got <= 0) return false;
  out[got] = '\0';
  return true;
}

uint64_t ReadNumber(const char* path) {
  char text[64];
  if (!ReadFile(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return UINT64_MAX;
  return strtoull(text, nullptr, 10);
}

// Version 2 in the process's own group; version 1 at its usual mount. The smallest limit on the way
// up may be lower; containers mount their own root.
uint64_t ControlGroupRoom() {
  char text[4096];
  char path[4096 + 64];
  if (ReadFile("/proc/self/cgroup", text, sizeof text)) {
    const char* own = strstr(text, "0::/");
    if (own != nullptr) {
      const int length = static_cast<int>(strcspn(own + 3, "\n"));
      snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/memory.max", length, own + 3);
      uint64_t limit = ReadNumber(path);
      if (limit == UINT64_MAX) limit = ReadNumber("/sys/fs/cgroup/memory.max");
      snprintf(path, sizeof path, "/sys/fs/cgroup%.*s/memory.current", length, own + 3);
      uint64_t used = ReadNumber(path);
      if (used == UINT64_MAX) used = ReadNumber("/sys/fs/cgroup/memory.current");
      if (limit != UINT64_MAX && used != UINT64_MAX) return limit > used ? limit - used : 0;
    }
  }
  const uint64_t limit = ReadNumber("/sys/fs/cgroup/memory/memory.limit_in_bytes");
  const uint64_t used = ReadNumber("/sys/fs/cgroup/memory/memory.usage_in_bytes");
  if (limit == UINT64_MAX || used == UINT64_MAX) return UINT64_MAX;
  return limit > used ? limit - used : 0;
}

}  // namespace

uint64_t ParseMemAvailable(const char* meminfo) {
  const char* line = strstr(meminfo, "MemAvailable:");
  if (line == nullptr) return UINT64_MAX;
  return strtoull(line + strlen("MemAvailable:"), nullptr, 10) * 1024;
}

uint64_t AvailableHostMemory() {
  char text[4096];
  uint64_t available = UINT64_MAX;
  if (ReadFile("/proc/meminfo", text, sizeof text)) available = ParseMemAvailable(text);
  return std::min(available, ControlGroupRoom());
}

uint64_t DefaultHostShare(uint64_t available) {
  const uint64_t share = available / 100 * 80;
  const uint64_t reserve = std::max(uint64_t{2} << 30, share / 20);
  return share > reserve ? share - reserve : 0;
}

uint64_t HostShare() {
  static std::once_flag once;
  static uint64_t share;
  std::call_once(once, [] {
    const uint64_t available = AvailableHostMemory();
    const Size& wanted = Settings().host_budget;
    share = wanted.given ? wanted.Of(available) : DefaultHostShare(available);
  });
  return share;
}

}  // namespace atp::shim
