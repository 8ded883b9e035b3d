// SPDX-License-Identifier: Apache-2.0
#include "cli/host_room.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace atp::cli {
namespace {

namespace fs = std::filesystem;

// Nothing: not there, or "max".
std::optional<uint64_t> NumberIn(const fs::path& file) {
  uint64_t value = 0;
  if (std::ifstream(file) >> value) return value;
  return std::nullopt;
}

// A limit anywhere on the way up holds. In a container the group is the root, under whatever name
// the host knows it: folders that are not there are passed over.
uint64_t RoomUpwards(const fs::path& root, fs::path group, const char* limit, const char* used) {
  uint64_t room = UINT64_MAX;
  for (;; group = group.parent_path()) {
    const fs::path folder = root / group.relative_path();
    const auto most = NumberIn(folder / limit), now = NumberIn(folder / used);
    if (most && now) room = std::min(room, *most > *now ? *most - *now : 0);
    if (group.relative_path().empty()) return room;
  }
}

// Lines of /proc/self/cgroup (cgroups(7)): "0::GROUP" for version 2, "ID:CONTROLLERS:GROUP" for 1.
uint64_t GroupRoom(std::istream& lines, const fs::path& root) {
  uint64_t room = UINT64_MAX;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first, second - first + 1);
    controllers.front() = controllers.back() = ',';
    const fs::path group = line.substr(second + 1);
    if (controllers == ",,") {
      room = std::min(room, RoomUpwards(root, group, "memory.max", "memory.current"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      room = std::min(room, RoomUpwards(root / "memory", group, "memory.limit_in_bytes",
                                        "memory.usage_in_bytes"));
    }
  }
  return room;
}

}  // namespace

HostRoom FindHostRoom(const fs::path& proc, const fs::path& groups) {
  HostRoom room;
  std::ifstream meminfo(proc / "meminfo"), cgroup(proc / "self" / "cgroup");
  for (std::string word; meminfo >> word;) {
    uint64_t kib = 0;
    if (word == "MemAvailable:" && meminfo >> kib) room.bytes = kib * 1024;
  }
  const uint64_t of_group = GroupRoom(cgroup, groups);
  if (of_group < room.bytes) room = {of_group, true};
  return room;
}

}  // namespace atp::cli
