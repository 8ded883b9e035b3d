// SPDX-License-Identifier: Apache-2.0
#include "shim/shimlog.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace atp::shim {
namespace {

std::string TakeStderr(void (*body)()) {
  testing::internal::CaptureStderr();
  body();
  return testing::internal::GetCapturedStderr();
}

TEST(ShimLog, ALineHasProcessLevelTextAndNothingElse) {
  const std::string line = TakeStderr([] { LogLine(LogLevel::kWarn, "moved=%d MiB", 5); });
  EXPECT_EQ(line, "atpshim[" + std::to_string(getpid()) + "] warn: moved=5 MiB\n");
}

TEST(ShimLog, LevelsBelowTheSettingAreNotEvenFormatted) {
  g_log_level = LogLevel::kWarn;
  EXPECT_EQ(TakeStderr([] { ATP_LOG_INFO("never seen"); }), "");
  EXPECT_NE(TakeStderr([] { ATP_LOG_ERROR("seen"); }), "");
}

TEST(ShimLog, LongLinesAreCutAndStillEndWithOneNewline) {
  const std::string line = TakeStderr([] {
    const std::string text(5000, 'x');
    LogLine(LogLevel::kError, "%s", text.c_str());
  });
  EXPECT_EQ(line.size(), 1024u);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(ShimLog, ErrnoOfTheProgramIsLeftAlone) {
  errno = 42;
  TakeStderr([] { LogLine(LogLevel::kError, "x"); });
  EXPECT_EQ(errno, 42);
}

TEST(ShimLog, NamedFilesAreForTheOwnerOnlyAndNoSymlinkIsFollowed) {
  char folder[] = "/tmp/atp-shimlog-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/log", link = std::string(folder) + "/link";
  const int fd = OpenNamedFile(file.c_str(), true);
  ASSERT_GE(fd, 0);
  struct stat status;
  ASSERT_EQ(fstat(fd, &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  close(fd);
  ASSERT_EQ(symlink(file.c_str(), link.c_str()), 0);
  testing::internal::CaptureStderr();
  EXPECT_LT(OpenNamedFile(link.c_str(), true), 0);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("cannot open"), std::string::npos);
  unlink(link.c_str());
  unlink(file.c_str());
  rmdir(folder);
}

TEST(HumanBytes, UsesTheUnitThatReadsBest) {
  EXPECT_STREQ(HumanBytes(0).text(), "0 B");
  EXPECT_STREQ(HumanBytes(1023).text(), "1023 B");
  EXPECT_STREQ(HumanBytes(1536).text(), "1.5 KiB");
  EXPECT_STREQ(HumanBytes(40ull << 30).text(), "40.0 GiB");
  EXPECT_STREQ(HumanBytes(UINT64_MAX).text(), "16777215.9 TiB");
}

}  // namespace
}  // namespace atp::shim
