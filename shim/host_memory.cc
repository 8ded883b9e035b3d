// SPDX-License-Identifier: Apache-2.0
#include "shim/host_memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "shim/resolve.h"
#include "shim/settings.h"

namespace atp::shim {
namespace {

constexpr size_t kPathBytes = 4096;

bool ReadFile(const char* path, char* out, size_t size) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, out, size - 1);
  close(fd);
  if (got <= 0) return false;
  out[got] = '\0';
  return true;
}

uint64_t ReadNumber(const char* folder, const char* file) {
  char path[kPathBytes + 64], text[64];
  snprintf(path, sizeof path, "%s/%s", folder, file);
  if (!ReadFile(path, text, sizeof text) || text[0] < '0' || text[0] > '9') return UINT64_MAX;
  return strtoull(text, nullptr, 10);
}

struct Files {
  const char* limit;
  const char* used;
};
constexpr Files kVersion2 = {"memory.max", "memory.current"};
constexpr Files kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes"};

// A limit anywhere on the way up holds for the process. A container sees its own group as the root,
// under whatever name the host knows it, so folders that are not there are passed over.
uint64_t RoomUpwards(const char* root, const char* group, size_t length, Files files) {
  char folder[kPathBytes];
  if (snprintf(folder, sizeof folder, "%s%.*s", root, static_cast<int>(length), group) >=
      static_cast<int>(sizeof folder)) {
    return UINT64_MAX;
  }
  const size_t root_length = strlen(root);
  uint64_t room = UINT64_MAX;
  while (true) {
    const uint64_t limit = ReadNumber(folder, files.limit), used = ReadNumber(folder, files.used);
    if (limit != UINT64_MAX && used != UINT64_MAX) {
      room = std::min(room, limit > used ? limit - used : 0);
    }
    char* slash = strrchr(folder + root_length, '/');
    if (slash == nullptr) return room;
    *slash = '\0';
  }
}

// A line is "ID:CONTROLLERS:GROUP"; CONTROLLERS of version 1 are separated by commas.
bool HasMemory(const char* controllers, size_t length) {
  constexpr char kMemory[] = "memory";
  for (const char* end = controllers + length; controllers < end;) {
    const size_t word = std::min(strcspn(controllers, ","), static_cast<size_t>(end - controllers));
    if (word == strlen(kMemory) && strncmp(controllers, kMemory, word) == 0) return true;
    controllers += word + 1;
  }
  return false;
}

}  // namespace

uint64_t ControlGroupRoom(const char* cgroup, const char* root) {
  char version1[kPathBytes];
  snprintf(version1, sizeof version1, "%s/memory", root);
  uint64_t room = UINT64_MAX;
  for (const char* line = cgroup; *line != '\0';
       line += strcspn(line, "\n"), line += *line != '\0') {
    const char* controllers = strchr(line, ':');
    const char* group = controllers != nullptr ? strchr(controllers + 1, ':') : nullptr;
    const size_t line_length = strcspn(line, "\n");
    if (group == nullptr || group > line + line_length) continue;
    ++controllers;
    const auto controllers_length = static_cast<size_t>(group++ - controllers);
    const size_t length = strcspn(group, "\n");
    if (controllers_length == 0) {
      room = std::min(room, RoomUpwards(root, group, length, kVersion2));
    } else if (HasMemory(controllers, controllers_length)) {
      room = std::min(room, RoomUpwards(version1, group, length, kVersion1));
    }
  }
  return room;
}

uint64_t ParseMemAvailable(const char* meminfo) {
  const char* line = strstr(meminfo, "MemAvailable:");
  if (line == nullptr) return UINT64_MAX;
  return strtoull(line + strlen("MemAvailable:"), nullptr, 10) * 1024;
}

uint64_t AvailableHostMemory() {
  if (real().atpSimHostFree != nullptr) {
    const uint64_t simulated = real().atpSimHostFree();
    if (simulated != UINT64_MAX) return simulated;
  }
  char text[4096];
  uint64_t available = UINT64_MAX;
  if (ReadFile("/proc/meminfo", text, sizeof text)) available = ParseMemAvailable(text);
  if (!ReadFile("/proc/self/cgroup", text, sizeof text)) return available;
  return std::min(available, ControlGroupRoom(text, "/sys/fs/cgroup"));
}

uint64_t DefaultHostShare(uint64_t available) {
  const uint64_t share = available / 100 * 80;
  const uint64_t reserve = std::max(uint64_t{2} << 30, share / 20);
  return share > reserve ? share - reserve : 0;
}

HostLimit HostLimitOf(uint64_t available) {
  const Size& wanted = Settings().host_budget;
  return {wanted.given ? wanted.Of(available) : DefaultHostShare(available), available,
          wanted.given};
}

uint64_t HostShare() {
  static std::once_flag once;
  static uint64_t share;
  std::call_once(once, [] { share = HostLimitOf(AvailableHostMemory()).bytes; });
  return share;
}

}  // namespace atp::shim
