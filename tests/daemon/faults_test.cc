// SPDX-License-Identifier: Apache-2.0
// A real daemon that is killed at any moment, again and again (ATP_DAEMON_KILLS times, 40 by
// default), while clients tell and ask. What it has said to have kept, it has kept.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "daemon/store.h"
#include "protocol/message.h"
#include "tests/daemon/daemon_process.h"
#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::Fd;
using protocol::MessageKind;
using protocol::SampleLearned;

// True when it was answered, and not refused.
bool Say(const std::string& path, MessageKind kind, const std::string& text,
         const std::vector<uint8_t>& body) {
  protocol::Message message;
  message.kind = kind;
  message.text = text;
  const Fd socket = protocol::Connect(path);
  if (!socket) return false;
  Fd bodies[] = {protocol::MakeBody(body)};
  bool closed = false;
  if (!protocol::Send(socket, message, bodies) || !protocol::AwaitReadable(socket, -1))
    return false;
  const auto received = protocol::Receive(socket, &closed);
  return received && received->message.kind == MessageKind::kAnswer;
}

bool Keep(const std::string& path, uint64_t seed) {
  return Say(path, MessageKind::kTell, "import", protocol::Write(SampleLearned(1, 1000 * seed)));
}

TEST(Killed, AtAnyMomentItLosesNothingThatItHasKept) {
  const char* given = std::getenv("ATP_DAEMON_KILLS");
  const int kills = given != nullptr ? std::atoi(given) : 40;
  const std::filesystem::path folder = testing::TempDir() + "killed." + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  std::mt19937 random(1);
  std::set<uint64_t> kept;
  uint64_t seed = 0;
  for (int kill = 0; kill < kills; ++kill) {
    DaemonProcess daemon(folder);
    ASSERT_EQ(daemon.said().find("set-aside"), std::string::npos) << daemon.said();
    std::atomic<bool> over{false};
    std::thread others([&, first = seed + 1000000] {
      for (uint64_t i = first; !over; ++i) {
        Keep(daemon.socket(), i % 50 + 1000000);
        Say(daemon.socket(), MessageKind::kAsk, "", protocol::Write(SampleLearned().fingerprint));
      }
    });
    for (unsigned left = random() % 20; left > 0; --left) {
      const uint64_t one = ++seed % 500;  // no more than the store has room for
      if (Keep(daemon.socket(), one)) kept.insert(one);
    }
    daemon.End(SIGKILL);
    over = true;
    others.join();
  }
  Store store(folder / "atpd.db", {});
  EXPECT_TRUE(store.set_aside().empty());
  for (const uint64_t one : kept) {
    ASSERT_EQ(store.Find(geteuid(), SampleLearned(1, 1000 * one).fingerprint, 1).size(), 1u) << one;
  }
  EXPECT_FALSE(kept.empty());
  std::filesystem::remove_all(folder);
}

// Resident kilobytes, and open descriptors.
struct Held {
  long kilobytes = 0, descriptors = 0;
};
Held HeldBy(pid_t pid) {
  const std::filesystem::path process = "/proc/" + std::to_string(pid);
  Held held;
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) held.kilobytes = std::stol(line.substr(6));
  }
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(process / "fd")) {
    ++held.descriptors;
  }
  return held;
}

TEST(Hostile, TenThousandConnectionsAndMessagesLeaveNothingBehind) {
  const std::filesystem::path folder = testing::TempDir() + "hostile." + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  DaemonProcess daemon(folder, {"--tune", "off"});
  std::mt19937_64 random(1);
  const std::vector<uint8_t> learned = protocol::Write(SampleLearned());
  const auto round = [&](int times) {
    for (int i = 0; i < times; ++i) {
      const Fd socket = protocol::Connect(daemon.socket());
      if (!socket) continue;  // its queue is full for a moment
      protocol::Message message;
      message.kind = static_cast<MessageKind>(random() % 9);
      message.number = 1 + random() % 9;  // never all: the store stays as it is
      message.text.assign(random() % 64, static_cast<char>(random()));
      std::vector<uint8_t> bytes = learned;
      bytes[random() % bytes.size()] ^= 1;
      Fd bodies[] = {protocol::MakeBody(bytes)};
      if (random() % 2 == 0) protocol::Send(socket, message, bodies);
    }
    while (!Keep(daemon.socket(), 1)) std::this_thread::yield();  // the end of its queue
  };
  round(2000);
  const Held before = HeldBy(daemon.pid());
  round(8000);
  const Held after = HeldBy(daemon.pid());
  EXPECT_LT(after.kilobytes, before.kilobytes + 4096);
  EXPECT_LE(after.descriptors, before.descriptors + 300);
  EXPECT_EQ(WEXITSTATUS(daemon.End(SIGTERM)), 0);
  std::filesystem::remove_all(folder);
}

// A daemon that is stopped: its socket fills up, and nobody who talks to it waits.
TEST(Stopped, AFullSocketRefusesAtOnceAndIsServedLater) {
  const std::filesystem::path folder = testing::TempDir() + "stopped." + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  DaemonProcess daemon(folder, {"--tune", "off"});
  kill(daemon.pid(), SIGSTOP);
  std::vector<Fd> waiting;
  protocol::Message message;
  message.kind = MessageKind::kStatus;
  while (Fd socket = protocol::Connect(daemon.socket())) {
    while (protocol::Send(socket, message) && waiting.empty()) {
    }
    waiting.push_back(std::move(socket));
    ASSERT_LT(waiting.size(), 100000u);
  }
  EXPECT_FALSE(Keep(daemon.socket(), 1));
  kill(daemon.pid(), SIGCONT);
  waiting.clear();
  while (!Keep(daemon.socket(), 1)) std::this_thread::yield();
  std::filesystem::remove_all(folder);
}

// As a reload does by systemd.
TEST(Reload, NewSettingsHoldAtOnceAndBadOnesNever) {
  const std::filesystem::path folder = testing::TempDir() + "reload." + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "conf";
  std::ofstream(file) << "store-workloads = 100\n";
  {
    DaemonProcess daemon(folder, {"--config", file, "--tune", "off"});
    for (uint64_t seed = 1; seed <= 5; ++seed) EXPECT_TRUE(Keep(daemon.socket(), seed));
    std::ofstream(file) << "store-workloads = many\n";
    kill(daemon.pid(), SIGHUP);
    daemon.Await("those from before hold");
    for (uint64_t seed = 6; seed <= 8; ++seed) EXPECT_TRUE(Keep(daemon.socket(), seed));
    std::ofstream(file) << "store-workloads = 3\n";
    kill(daemon.pid(), SIGHUP);
    daemon.Await("were read again");
    for (uint64_t seed = 9; seed <= 10; ++seed) EXPECT_TRUE(Keep(daemon.socket(), seed));
  }
  EXPECT_EQ(Store(folder / "atpd.db", {}).workloads(), 3u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace atp::daemon
