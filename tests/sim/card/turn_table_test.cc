// SPDX-License-Identifier: Apache-2.0
#include "sim/card/turn_table.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace atp::sim {
namespace {

// A thread for each member, which notes when it had its turn.
class TurnTableTest : public testing::Test {
 protected:
  void Start(TurnTable* table, Member member, std::function<void(TurnTable*)> body,
             pid_t process = getpid()) {
    ASSERT_EQ(table->Join(member, process), member);
    threads_.emplace_back([=] {
      SetCurrentMember(member);
      body(table);
      table->Begin(kNever - 1);
      table->Leave();
    });
  }
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
  }
  // In a turn: no two threads are here at the same time.
  void Note(Time time) {
    order_ += std::to_string(CurrentMember()) + "@" + std::to_string(time) + " ";
  }
  std::function<void(TurnTable*)> Calls(std::vector<Time> times) {
    return [this, times](TurnTable* table) {
      for (const Time time : times) {
        table->Begin(time);
        Note(time);
        table->End();
      }
    };
  }
  void Join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::string order_;
  std::vector<std::thread> threads_;
};

TEST_F(TurnTableTest, TheEarliestCallComesFirstWhoeverIsFaster) {
  TurnTable table(2);
  Start(&table, 0, Calls({10, 40, 50}));
  Start(&table, 1, Calls({5, 20, 60}));
  Join();
  EXPECT_EQ(order_, "1@5 0@10 1@20 0@40 0@50 1@60 ");
}

TEST_F(TurnTableTest, OfEqualTimesTheSmallerNumberComesFirst) {
  TurnTable table(2);
  Start(&table, 1, Calls({7}));
  Start(&table, 0, Calls({7}));
  Join();
  EXPECT_EQ(order_, "0@7 1@7 ");
}

TEST_F(TurnTableTest, OneThatWaitsLetsTheOthersActUntilThen) {
  TurnTable table(2);
  Start(&table, 0, [this](TurnTable* t) {
    t->Begin(0);
    EXPECT_TRUE(t->Await(100)) << "the other one acts before";
    while (t->Await(100)) {
    }
    Note(100);
    t->End();
  });
  Start(&table, 1, Calls({30, 60, 150}));
  Join();
  EXPECT_EQ(order_, "1@30 1@60 0@100 1@150 ");
}

TEST_F(TurnTableTest, WhereNobodyHasAnythingToDoTheWaitEnds) {
  TurnTable table(2);
  std::vector<bool> ended(2);
  for (const Member member : {0u, 1u}) {
    Start(&table, member, [&ended, member](TurnTable* t) {
      t->Begin(0);
      while (t->Await(kNever)) {
      }
      ended[member] = true;
      t->End();
    });
  }
  Join();
  EXPECT_TRUE(ended[0] && ended[1]);
}

TEST_F(TurnTableTest, OneThatSleepsDoesNotHoldTheOthersUp) {
  int wake[2];
  ASSERT_EQ(pipe(wake), 0);
  const pid_t sleeper = fork();
  if (sleeper == 0) {
    char c;
    _exit(read(wake[0], &c, 1) < 0);
  }
  TurnTable table(2);
  bool slept = false;
  Start(
      &table, 1,
      [&](TurnTable* t) {
        t->Begin(1);
        t->End();
        char c;
        EXPECT_EQ(read(wake[0], &c, 1), 1);  // for as long as the process that it stands for
        slept = t->Begin(2);
        t->End();
      },
      sleeper);
  Start(&table, 0, [&](TurnTable* t) {
    t->Begin(1000);
    t->End();
    EXPECT_EQ(write(wake[1], "go", 2), 2);
  });
  Join();
  EXPECT_TRUE(slept);
  waitpid(sleeper, nullptr, 0);
}

TEST_F(TurnTableTest, ANumberIsGivenOnce) {
  TurnTable table(1);
  EXPECT_EQ(table.Join(3, getpid()), 3u);
  EXPECT_EQ(table.Join(3, getpid()), kMostMembers);
  EXPECT_EQ(table.Join(kMostMembers, getpid()), 0u);
  EXPECT_FALSE(table.Over());
}

}  // namespace
}  // namespace atp::sim
