// SPDX-License-Identifier: Apache-2.0
#include "daemon/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::SampleLearned;

class StoreTest : public testing::Test {
 protected:
  StoreTest() {
    folder_ = testing::TempDir() + "store." + std::to_string(getpid());
    std::filesystem::remove_all(folder_);
    file_ = folder_ / "sub" / "atpd.db";
  }
  ~StoreTest() override { std::filesystem::remove_all(folder_); }

  static void Tell(Store* store, const protocol::Learned& learned, uint32_t user = 1,
                   uint64_t job = 7) {
    EXPECT_TRUE(store->Remember(user, learned, protocol::Write(learned), job));
  }
  static std::vector<std::string> Commands(Store* store, const protocol::Fingerprint& like,
                                           uint32_t user = 1) {
    std::vector<std::string> commands;
    for (const auto& bytes : store->Find(user, like, 3)) {
      protocol::Learned learned;
      std::string error;
      EXPECT_TRUE(protocol::Read(bytes, &learned, &error)) << error;
      commands.push_back(learned.command);
    }
    return commands;
  }
  void Sql(const char* sql) const {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database, sql, nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(database);
    sqlite3_close(database);
  }
  std::string Content(const std::filesystem::path& file) const {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::filesystem::path folder_, file_;
};

TEST_F(StoreTest, WhatWasToldIsThereAfterARestart) {
  {
    Store store(file_, {});
    Tell(&store, SampleLearned());
  }
  Store store(file_, {});
  EXPECT_EQ(store.workloads(), 1u);
  const auto found = store.Find(1, SampleLearned().fingerprint, 3);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], protocol::Write(SampleLearned()));
}

TEST_F(StoreTest, TheMostAlikeComesFirstAndStrangersNotAtAll) {
  Store store(file_, {});
  protocol::Learned near = SampleLearned(5);
  near.command = "near";
  Tell(&store, SampleLearned());
  Tell(&store, near);
  Tell(&store, SampleLearned(1, /*seed=*/100));
  EXPECT_EQ(Commands(&store, SampleLearned().fingerprint),
            (std::vector<std::string>{"train --seed 0", "near"}));
  protocol::Fingerprint elsewhere = SampleLearned().fingerprint;
  elsewhere.device = "another card";
  EXPECT_TRUE(Commands(&store, elsewhere).empty());
}

TEST_F(StoreTest, TheSameWorkloadIsReplaced) {
  Store store(file_, {});
  Tell(&store, SampleLearned());
  protocol::Learned later = SampleLearned();
  later.command = "later";
  Tell(&store, later);
  EXPECT_EQ(store.workloads(), 1u);
  EXPECT_EQ(Commands(&store, later.fingerprint), std::vector<std::string>{"later"});
}

TEST_F(StoreTest, UsersDoNotSeeEachOther) {
  Store store(file_, {});
  Tell(&store, SampleLearned(), /*user=*/1);
  EXPECT_TRUE(Commands(&store, SampleLearned().fingerprint, /*user=*/2).empty());
  EXPECT_EQ(Commands(&store, SampleLearned().fingerprint, /*user=*/1).size(), 1u);
}

TEST_F(StoreTest, WhatWasNotUsedForTheLongestTimeMakesRoom) {
  StoreLimits limits;
  limits.workloads = 2;
  Store store(file_, limits);
  Tell(&store, SampleLearned(1, 0));
  Tell(&store, SampleLearned(1, 1000));
  Commands(&store, SampleLearned(1, 0).fingerprint);
  Tell(&store, SampleLearned(1, 2000));
  Tell(&store, SampleLearned(1, 3000), /*user=*/2);  // has room of their own
  EXPECT_EQ(Commands(&store, SampleLearned(1, 0).fingerprint).size(), 1u);
  EXPECT_EQ(Commands(&store, SampleLearned(1, 1000).fingerprint).size(), 0u);
  EXPECT_EQ(Commands(&store, SampleLearned(1, 2000).fingerprint).size(), 1u);
  EXPECT_EQ(store.counters().forgotten, 1u);
}

TEST_F(StoreTest, BytesAreBounded) {
  const uint64_t one =
      protocol::Write(SampleLearned()).size() + protocol::Write(SampleLearned().fingerprint).size();
  StoreLimits limits;
  limits.bytes = 5 * one;
  Store store(file_, limits);
  for (uint64_t seed = 0; seed < 20; ++seed) Tell(&store, SampleLearned(1, 1000 * seed));
  EXPECT_LE(store.bytes(), limits.bytes);
  EXPECT_GE(store.workloads(), 4u);
  EXPECT_EQ(Commands(&store, SampleLearned(1, 19000).fingerprint).size(), 1u);
}

TEST_F(StoreTest, ADamagedFileIsSetAsideAndKept) {
  {
    Store store(file_, {});
    Tell(&store, SampleLearned());
  }
  std::string content = Content(file_);
  for (size_t i = 0; i < 2048 && i < content.size(); ++i) content[i] = static_cast<char>(i);
  std::ofstream(file_, std::ios::binary) << content;
  Store store(file_, {});
  EXPECT_EQ(store.workloads(), 0u);
  ASSERT_FALSE(store.set_aside().empty());
  EXPECT_EQ(Content(store.set_aside()), content);
  Tell(&store, SampleLearned());
}

TEST_F(StoreTest, AFileOfANewerProgramIsSetAsideAndKept) {
  {
    Store store(file_, {});
    Tell(&store, SampleLearned());
  }
  Sql("PRAGMA user_version = 1000");
  Store store(file_, {});
  EXPECT_EQ(store.workloads(), 0u);
  ASSERT_FALSE(store.set_aside().empty());
  std::filesystem::rename(store.set_aside(), file_.string() + ".again");
  file_ += ".again";
  Sql("PRAGMA user_version = 3");
  EXPECT_EQ(Store(file_, {}).workloads(), 1u);
}

// As the first version of the store was.
TEST_F(StoreTest, AnOlderFileIsBroughtUpToDateWithWhatItHolds) {
  {
    Store store(file_, {});
    Tell(&store, SampleLearned());
  }
  Sql("DROP TABLE run; DROP TABLE decision; ALTER TABLE workload DROP COLUMN searched;"
      "PRAGMA user_version = 1");
  Store store(file_, {});
  EXPECT_TRUE(store.set_aside().empty());
  ASSERT_EQ(store.List(1).size(), 1u);
  EXPECT_TRUE(store.List(1)[0].runs.empty());
  Tell(&store, SampleLearned());
  EXPECT_EQ(store.List(1)[0].runs.size(), 1u);
}

TEST_F(StoreTest, TheLastRunsOfAWorkloadAreItsHistory) {
  Store store(file_, {});
  for (uint64_t job = 1; job <= 30; ++job) {
    protocol::Learned learned = SampleLearned();
    learned.phases[0].periods = job;
    Tell(&store, learned, 1, job);
    learned.phases[0].periods = 100 + job;  // the same run, later
    Tell(&store, learned, 1, job);
  }
  const auto list = store.List(1);
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].told, 60u);
  EXPECT_EQ(list[0].command, "train --seed 0");
  ASSERT_EQ(list[0].runs.size(), 20u);
  EXPECT_GT(list[0].runs[0].periods, 100u);
  EXPECT_DOUBLE_EQ(list[0].runs[0].best_seconds, 0.021);
}

// A clock that jumps back must not make the newest run the oldest one.
TEST_F(StoreTest, TheNewestRunsStayWhereTheClockJumps) {
  static int64_t now;
  Store store(file_, {});
  store.SetClock([] { return now; });
  for (uint64_t job = 1; job <= 40; ++job) {
    now = job <= 20 ? 2'000'000'000 + static_cast<int64_t>(job) : 1'000 - static_cast<int64_t>(job);
    protocol::Learned learned = SampleLearned();
    learned.phases[0].periods = job;
    Tell(&store, learned, 1, job);
  }
  const auto runs = store.List(1)[0].runs;
  ASSERT_EQ(runs.size(), 20u);
  EXPECT_EQ(runs.front().periods, 21u);
  EXPECT_EQ(runs.back().periods, 40u);
}

// Somebody writes over the file while it is open.
TEST_F(StoreTest, AFileThatIsDamagedWhileItIsUsedIsSurvivedAndSetAsideLater) {
  const std::vector<uint8_t> junk(1 << 16, 0xa5);
  {
    Store store(file_, {});
    for (uint64_t seed = 0; seed < 50; ++seed) Tell(&store, SampleLearned(1, 1000 * seed));
    for (const char* part : {"", "-wal"}) {
      std::fstream out(file_.string() + part, std::ios::in | std::ios::out | std::ios::binary);
      out.write(reinterpret_cast<const char*>(junk.data()), junk.size());
    }
    for (uint64_t seed = 0; seed < 50; ++seed) {
      const protocol::Learned learned = SampleLearned(1, 1000 * seed);
      store.Find(1, learned.fingerprint, 3);
      store.Remember(1, learned, protocol::Write(learned), seed + 1);
      store.List(1);
    }
  }
  Store store(file_, {});
  Tell(&store, SampleLearned());
  EXPECT_EQ(store.List(1).size(), 1u);
}

TEST_F(StoreTest, AUserForgetsAndReadsTheirOwnOnly) {
  Store store(file_, {});
  Tell(&store, SampleLearned(1, 0), 1);
  Tell(&store, SampleLearned(1, 1000), 1);
  Tell(&store, SampleLearned(1, 0), 2);
  const uint64_t id = store.List(1)[0].id;
  EXPECT_EQ(store.Forget(2, id), 0u);
  EXPECT_FALSE(store.Get(2, id));
  EXPECT_TRUE(store.Get(1, id));
  EXPECT_EQ(store.Forget(1, id), 1u);
  EXPECT_FALSE(store.Get(1, id));
  EXPECT_EQ(store.Forget(1, 0), 1u);
  EXPECT_EQ(store.List(2).size(), 1u);
}

TEST_F(StoreTest, AFileThatSomebodyHoldsCostsMemoryOnly) {
  Store store(file_, {});
  Tell(&store, SampleLearned());
  sqlite3* other = nullptr;
  ASSERT_EQ(sqlite3_open(file_.c_str(), &other), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  const protocol::Learned more = SampleLearned(1, 1000);
  EXPECT_FALSE(store.Remember(1, more, protocol::Write(more), 1));
  EXPECT_EQ(Commands(&store, SampleLearned().fingerprint).size(), 1u);
  EXPECT_GE(store.counters().errors, 1u);
  sqlite3_close(other);
  Tell(&store, more);
}

// As when the disk is full: SQLite gives the same answer at a limit of its own.
TEST_F(StoreTest, ADiskThatIsFullCostsMemoryOnly) {
  Store store(file_, {});
  Tell(&store, SampleLearned());
  const auto before = Content(file_).size();
  ASSERT_TRUE(store.LimitPages(1));
  bool kept = true;
  for (uint64_t seed = 1; seed < 200 && kept; ++seed) {
    const protocol::Learned more = SampleLearned(1, 1000 * seed);
    kept = store.Remember(1, more, protocol::Write(more), 1);
  }
  EXPECT_FALSE(kept);
  EXPECT_EQ(Commands(&store, SampleLearned().fingerprint).size(), 1u);
  EXPECT_GE(Content(file_).size(), before);
}

TEST_F(StoreTest, IsForItsOwnerAlone) {
  Store store(file_, {});
  Tell(&store, SampleLearned());
  for (const auto& entry : std::filesystem::directory_iterator(file_.parent_path())) {
    struct stat status {};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600u) << entry.path();
  }
}

}  // namespace
}  // namespace atp::daemon
