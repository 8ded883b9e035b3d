// SPDX-License-Identifier: Apache-2.0
#include "shim/host_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace atp::shim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

TEST(HostMemory, ReadsMemAvailable) {
  EXPECT_EQ(ParseMemAvailable("MemTotal: 9 kB\nMemFree:  1 kB\nMemAvailable:   2048 kB\nX: 3 kB\n"),
            2048u * 1024);
  EXPECT_EQ(ParseMemAvailable("MemTotal: 9 kB\n"), UINT64_MAX);
}

TEST(HostMemory, TheShareKeepsAReserveOfTwoGibibytesOrFivePercent) {
  EXPECT_EQ(DefaultHostShare(10 * kGiB), 10 * kGiB / 100 * 80 - 2 * kGiB);
  const uint64_t large = 1000 * kGiB / 100 * 80;
  EXPECT_EQ(DefaultHostShare(1000 * kGiB), large - large / 20);
  EXPECT_EQ(DefaultHostShare(kGiB), 0u);
}

// A folder with the files of control groups.
class ControlGroups : public testing::Test {
 protected:
  ~ControlGroups() override { std::filesystem::remove_all(root_); }
  void Put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  std::string root_ = testing::TempDir() + "cgroup." + std::to_string(getpid());
};

TEST_F(ControlGroups, TheSmallestRoomOnTheWayUpHolds) {
  Put("slice/memory.max", "1000");
  Put("slice/memory.current", "900");
  Put("slice/job/memory.max", "800");
  Put("slice/job/memory.current", "100");
  EXPECT_EQ(ControlGroupRoom("0::/slice/job\n", root_.c_str()), 100u);
  Put("slice/memory.current", "200");  // looked at again
  EXPECT_EQ(ControlGroupRoom("0::/slice/job\n", root_.c_str()), 700u);
}

TEST_F(ControlGroups, WithoutALimitThereIsNone) {
  Put("job/memory.max", "max");
  Put("job/memory.current", "100");
  EXPECT_EQ(ControlGroupRoom("0::/job\n", root_.c_str()), UINT64_MAX);
  EXPECT_EQ(ControlGroupRoom("", root_.c_str()), UINT64_MAX);
  EXPECT_EQ(ControlGroupRoom("nonsense\n:\n", root_.c_str()), UINT64_MAX);
}

TEST_F(ControlGroups, AContainerSeesItsGroupAsTheRoot) {
  Put("memory.max", "500");
  Put("memory.current", "100");
  EXPECT_EQ(ControlGroupRoom("0::/docker/0123\n", root_.c_str()), 400u);
  EXPECT_EQ(ControlGroupRoom("0::/\n", root_.c_str()), 400u);
}

TEST_F(ControlGroups, VersionOneIsUnderstoodBesideVersionTwo) {
  Put("memory/job/memory.limit_in_bytes", "1000");
  Put("memory/job/memory.usage_in_bytes", "1200");
  EXPECT_EQ(ControlGroupRoom("5:cpu,memory:/job\n3:pids:/else\n0::/\n", root_.c_str()), 0u);
  Put("memory/job/memory.usage_in_bytes", "300");
  EXPECT_EQ(ControlGroupRoom("5:memory:/job\n0::/\n", root_.c_str()), 700u);
  EXPECT_EQ(ControlGroupRoom("5:memory2:/job\n", root_.c_str()), UINT64_MAX);
}

TEST(HostMemory, ThisMachineHasSome) { EXPECT_GT(AvailableHostMemory(), 0u); }

}  // namespace
}  // namespace atp::shim
