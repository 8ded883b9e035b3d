// SPDX-License-Identifier: Apache-2.0
// How much host memory a program may have: the machine's, or less where its control group says so,
// as in a container. What the shim goes by (ATP_HOST_BUDGET apart), for the doctor to tell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace atp::cli {

struct HostRoom {
  uint64_t bytes = 0;         // 0: not known
  bool of_the_group = false;  // the control group has less than the machine
};

// `proc` has meminfo and self/cgroup; `groups` is where control groups are mounted.
HostRoom FindHostRoom(const std::filesystem::path& proc = "/proc",
                      const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace atp::cli
