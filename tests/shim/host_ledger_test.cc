// SPDX-License-Identifier: Apache-2.0
#include "shim/host_ledger.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <string>

namespace atp::shim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

LedgerEntry Holding(uint64_t card, uint64_t managed, uint64_t room) {
  LedgerEntry entry;
  entry.devices[0] = {card, managed, room};
  return entry;
}

TEST(HostNeedTest, WhatFitsItsCardNeedsNoHost) {
  const LedgerEntry a = Holding(1, 4 * kGiB, 10 * kGiB), b = Holding(2, 9 * kGiB, 10 * kGiB);
  const LedgerEntry* all[] = {&a, &b};
  EXPECT_EQ(HostNeed(all), 0u);
}

TEST(HostNeedTest, ACardThatIsExceededNeedsTheHostForAllOfItsMemory) {
  const LedgerEntry a = Holding(1, 14 * kGiB, 10 * kGiB), b = Holding(2, 9 * kGiB, 10 * kGiB);
  const LedgerEntry* all[] = {&a, &b};
  EXPECT_EQ(HostNeed(all), 14 * kGiB);
}

TEST(HostNeedTest, ProcessesThatFitOneByOneMayExceedTheirCardTogether) {
  const LedgerEntry a = Holding(1, 6 * kGiB, 10 * kGiB), b = Holding(1, 7 * kGiB, 9 * kGiB);
  const LedgerEntry* all[] = {&a, &b};
  EXPECT_EQ(HostNeed(all), 13 * kGiB);
}

TEST(HostNeedTest, ABudgetBelowTheCardIsExceededByItsOwnProcessAlone) {
  const LedgerEntry a = Holding(1, 3 * kGiB, 2 * kGiB), b = Holding(1, 4 * kGiB, 10 * kGiB);
  const LedgerEntry* all[] = {&a, &b};
  EXPECT_EQ(HostNeed(all), 3 * kGiB);
}

class HostLedgerTest : public testing::Test {
 protected:
  HostLedgerTest() { unlink(path_.c_str()); }
  ~HostLedgerTest() override { unlink(path_.c_str()); }

  static void Put(HostLedger* ledger, uint64_t managed) {
    ledger->With([&](LedgerEntry* own, auto, uint64_t*) { own->devices[0] = {7, managed, kGiB}; });
  }
  static std::vector<uint64_t> All(HostLedger* ledger) {
    std::vector<uint64_t> managed;
    ledger->With([&](LedgerEntry*, std::span<const LedgerEntry* const> living, uint64_t*) {
      for (const LedgerEntry* entry : living) managed.push_back(entry->devices[0].managed);
    });
    std::sort(managed.begin(), managed.end());
    return managed;
  }
  // A process that runs `body`, says so, and then stays until it is killed.
  pid_t Stay(const std::function<void()>& body) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    const pid_t child = fork();
    if (child == 0) {
      body();
      if (write(ready[1], "x", 1) == 1) pause();
      _exit(1);
    }
    char said = 0;
    EXPECT_EQ(read(ready[0], &said, 1), 1);
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  static void Kill(pid_t child) {
    kill(child, SIGKILL);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
  }
  std::string path_ = testing::TempDir() + "ledger." + std::to_string(getpid());
};

TEST_F(HostLedgerTest, WithoutAFileAProcessCountsForItself) {
  HostLedger ledger;
  Put(&ledger, 5);
  EXPECT_EQ(All(&ledger), std::vector<uint64_t>{5});
  EXPECT_FALSE(ledger.shared());
}

TEST_F(HostLedgerTest, OthersCountUntilTheyAreKilled) {
  HostLedger ledger(path_.c_str());
  Put(&ledger, 5);
  auto* its = new HostLedger(path_.c_str());  // opened by the child only
  const pid_t other = Stay([&] { Put(its, 9); });
  EXPECT_EQ(All(&ledger), (std::vector<uint64_t>{5, 9}));
  const pid_t third = Stay([&] { Put(its, 11); });
  EXPECT_EQ(All(&ledger), (std::vector<uint64_t>{5, 9, 11}));
  Kill(other);
  EXPECT_EQ(All(&ledger), (std::vector<uint64_t>{5, 11}));
  Kill(third);
  EXPECT_EQ(All(&ledger), std::vector<uint64_t>{5});
  delete its;
}

TEST_F(HostLedgerTest, AForkedChildDoesNotKeepItsParentsEntryAlive) {
  HostLedger ledger(path_.c_str());
  auto* its = new HostLedger(path_.c_str());
  int child_lives[2];
  ASSERT_EQ(pipe(child_lives), 0);
  const pid_t parent = Stay([&] {
    Put(its, 9);
    int forked[2];
    if (pipe(forked) != 0 || fork() != 0) {
      char said = 0;
      if (read(forked[0], &said, 1) != 1) _exit(1);
      return;
    }
    its->AfterForkInChild();
    if (write(forked[1], "x", 1) != 1) _exit(1);
    close(child_lives[1]);
    char end = 0;
    _exit(read(child_lives[0], &end, 1) == 0 ? 0 : 1);  // until the test ends
  });
  Put(&ledger, 5);
  EXPECT_EQ(All(&ledger), (std::vector<uint64_t>{5, 9}));
  Kill(parent);
  EXPECT_EQ(All(&ledger), std::vector<uint64_t>{5});
  close(child_lives[1]);
  close(child_lives[0]);
  delete its;
}

TEST_F(HostLedgerTest, ASymbolicLinkIsNotFollowed) {
  const std::string target = path_ + ".target";
  ASSERT_EQ(symlink(target.c_str(), path_.c_str()), 0);
  HostLedger ledger(path_.c_str());
  Put(&ledger, 5);
  EXPECT_FALSE(ledger.shared());
  EXPECT_NE(access(target.c_str(), F_OK), 0);
}

TEST_F(HostLedgerTest, AProgramThatClosesWhatIsOpenGoesOnAlone) {
  HostLedger ledger(path_.c_str());
  Put(&ledger, 5);
  for (int fd = 3; fd < 1024; ++fd) {
    struct stat open {
    }, file{};
    if (fstat(fd, &open) == 0 && stat(path_.c_str(), &file) == 0 && open.st_ino == file.st_ino) {
      close(fd);
    }
  }
  Put(&ledger, 6);
  EXPECT_FALSE(ledger.shared());
  HostLedger other(path_.c_str());
  Put(&other, 9);
  EXPECT_EQ(All(&other), std::vector<uint64_t>{9});
}

}  // namespace
}  // namespace atp::shim
