// SPDX-License-Identifier: Apache-2.0
#include "cli/host_room.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace atp::cli {
namespace {

namespace fs = std::filesystem;

class HostRoomTest : public testing::Test {
 protected:
  ~HostRoomTest() override { fs::remove_all(root_); }
  void Put(const std::string& file, const std::string& text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  HostRoom Find(const std::string& cgroup) const {
    Put("proc/meminfo", "MemTotal:        8 kB\nMemAvailable:        4 kB");
    Put("proc/self/cgroup", cgroup);
    return FindHostRoom(root_ / "proc", root_ / "groups");
  }
  const fs::path root_ = testing::TempDir() + "host_room." + std::to_string(getpid());
};

TEST_F(HostRoomTest, WithoutALimitItIsTheMachines) {
  Put("groups/job/memory.max", "max");
  Put("groups/job/memory.current", "100");
  const HostRoom room = Find("0::/job");
  EXPECT_EQ(room.bytes, 4096u);
  EXPECT_FALSE(room.of_the_group);
  EXPECT_EQ(Find("nonsense").bytes, 4096u);
}

TEST_F(HostRoomTest, TheSmallestRoomOnTheWayUpHolds) {
  Put("groups/slice/memory.max", "1000");
  Put("groups/slice/memory.current", "900");
  Put("groups/slice/job/memory.max", "800");
  Put("groups/slice/job/memory.current", "100");
  const HostRoom room = Find("0::/slice/job");
  EXPECT_EQ(room.bytes, 100u);
  EXPECT_TRUE(room.of_the_group);
}

TEST_F(HostRoomTest, AContainerSeesItsGroupAsTheRoot) {
  Put("groups/memory.max", "500");
  Put("groups/memory.current", "100");
  EXPECT_EQ(Find("0::/docker/0123").bytes, 400u);
}

TEST_F(HostRoomTest, VersionOneIsUnderstoodBesideVersionTwo) {
  Put("groups/memory/job/memory.limit_in_bytes", "1000");
  Put("groups/memory/job/memory.usage_in_bytes", "300");
  EXPECT_EQ(Find("5:cpu,memory:/job\n3:pids:/else\n0::/").bytes, 700u);
  EXPECT_EQ(Find("5:memory2:/job").bytes, 4096u);
}

}  // namespace
}  // namespace atp::cli
