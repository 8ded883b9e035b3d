// SPDX-License-Identifier: Apache-2.0
// A real daemon that is killed at any moment, again and again (ATP_DAEMON_KILLS times, 40 by
// default), while clients tell and ask. What it has said to have kept, it has kept.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
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

}  // namespace
}  // namespace atp::daemon
