// SPDX-License-Identifier: Apache-2.0
#include "daemon/server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <thread>

#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::Fd;
using protocol::MessageKind;
using protocol::SampleLearned;

class ServerTest : public testing::Test {
 protected:
  ServerTest()
      : folder_(testing::TempDir() + "server." + std::to_string(getpid())),
        store_((std::filesystem::remove_all(folder_), folder_ / "db"), {}),
        service_(&store_),
        server_(Socket(), "", &service_),
        stop_(eventfd(0, EFD_CLOEXEC)),
        thread_([this] { server_.Run(stop_.get()); }) {}
  ~ServerTest() override {
    End();
    std::filesystem::remove_all(folder_);
  }
  void End() {
    if (!thread_.joinable()) return;
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }

  std::string Socket() const { return folder_ / "run" / "atpd.sock"; }

  Fd Say(MessageKind kind, const std::vector<uint8_t>& body) const {
    protocol::Message message;
    message.kind = kind;
    Fd socket = protocol::Connect(Socket());
    EXPECT_TRUE(socket);
    Fd bodies[] = {protocol::MakeBody(body)};
    EXPECT_TRUE(protocol::Send(socket, message, bodies));
    return socket;
  }
  // How many workloads the answer has; -1: no answer.
  int Ask() const {
    const Fd socket = Say(MessageKind::kAsk, protocol::Write(SampleLearned().fingerprint));
    bool closed = false;
    if (!protocol::AwaitReadable(socket, -1)) return -1;
    const auto received = protocol::Receive(socket, &closed);
    return received ? static_cast<int>(received->bodies.size()) : -1;
  }

  std::filesystem::path folder_;
  Store store_;
  Service service_;
  Server server_;
  Fd stop_;
  std::thread thread_;
};

TEST_F(ServerTest, AnswersAndIsForItsOwnerAlone) {
  EXPECT_EQ(Ask(), 0);
  Say(MessageKind::kTell, protocol::Write(SampleLearned()));
  EXPECT_EQ(Ask(), 1);  // in the order in which it was said
  struct stat status {};
  ASSERT_EQ(stat(Socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
}

TEST_F(ServerTest, ASecondOneIsRefusedAndALeftSocketIsTakenOver) {
  EXPECT_THROW(Server(Socket(), "", &service_), std::runtime_error);
  EXPECT_EQ(Ask(), 0);  // the first one goes on
}

TEST_F(ServerTest, AClientThatHangsUpInTheMiddleHarmsNobody) {
  for (int i = 0; i < 100; ++i) {
    protocol::Connect(Socket());
    Say(MessageKind::kAsk, protocol::Write(SampleLearned().fingerprint));
  }
  EXPECT_EQ(Ask(), 0);
}

TEST_F(ServerTest, WhatIsNoMessageIsHungUpOn) {
  std::mt19937_64 random(1);
  const std::vector<uint8_t> whole = protocol::WriteMessage({});
  for (int i = 0; i < 500; ++i) {
    std::vector<uint8_t> bytes = whole;
    bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    bytes.resize(1 + random() % bytes.size());
    const Fd socket = protocol::Connect(Socket());
    ASSERT_TRUE(socket);
    (void)send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  EXPECT_EQ(Ask(), 0);
}

// A body that is not sealed, is none of ours, or is of another size than it should be.
TEST_F(ServerTest, BodiesOfEveryWrongKindHarmNobody) {
  std::mt19937_64 random(1);
  const std::vector<uint8_t> whole = protocol::Write(SampleLearned());
  for (int i = 0; i < 600; ++i) {
    protocol::Message message;
    message.kind = static_cast<MessageKind>(random() % 9);
    message.number = random() % 3;
    Fd bodies[protocol::kMostBodies];
    for (Fd& body : bodies) {
      std::vector<uint8_t> bytes = whole;
      bytes[random() % bytes.size()] ^= static_cast<uint8_t>(1 + random() % 255);
      bytes.resize(random() % 3 == 0 ? random() % bytes.size() : bytes.size());
      int ends[2];
      switch (random() % 4) {
        case 0:  // would block whoever reads it
          ASSERT_EQ(pipe(ends), 0);
          body = Fd(ends[0]);
          close(ends[1]);
          break;
        case 1:  // not sealed
          body = Fd(memfd_create("test", MFD_CLOEXEC));
          break;
        case 2:
          body = Fd(open("/dev/zero", O_RDONLY | O_CLOEXEC));
          break;
        default:
          body = protocol::MakeBody(bytes);
      }
    }
    Fd socket;
    while (!(socket = protocol::Connect(Socket()))) std::this_thread::yield();
    ASSERT_TRUE(protocol::Send(socket, message, {bodies, random() % (protocol::kMostBodies + 1)}));
  }
  EXPECT_GE(Ask(), 0);
  End();
  EXPECT_GE(server_.counters().served, 600u);
}

// As a client does that was stopped (SIGSTOP) in the middle.
TEST_F(ServerTest, ClientsThatNeverReadTheirAnswerHoldUpNobody) {
  std::vector<Fd> stopped;
  for (int i = 0; i < 200; ++i) {
    stopped.push_back(Say(MessageKind::kAsk, protocol::Write(SampleLearned().fingerprint)));
  }
  Say(MessageKind::kTell, protocol::Write(SampleLearned()));
  EXPECT_EQ(Ask(), 1);
}

// Silent ones make room for those that come: ten thousand of them keep nobody out.
TEST_F(ServerTest, ManySilentConnectionsKeepNobodyOut) {
  const std::vector<uint8_t> fingerprint = protocol::Write(SampleLearned().fingerprint);
  std::vector<Fd> silent;
  constexpr size_t kAtOnce = 300;  // more than a user may have
  for (int i = 0; i < 10000; ++i) {
    Fd socket = protocol::Connect(Socket());
    if (!socket) {
      std::this_thread::yield();
      continue;  // the listener's queue is full for a moment
    }
    silent.push_back(std::move(socket));
    if (silent.size() > kAtOnce) silent.erase(silent.begin());
  }
  Fd socket;
  while (!(socket = protocol::Connect(Socket()))) std::this_thread::yield();
  protocol::Message message;
  message.kind = MessageKind::kAsk;
  Fd bodies[] = {protocol::MakeBody(fingerprint)};
  ASSERT_TRUE(protocol::Send(socket, message, bodies));
  ASSERT_TRUE(protocol::AwaitReadable(socket, -1));
  bool closed = false;
  EXPECT_TRUE(protocol::Receive(socket, &closed));
  End();
  EXPECT_GT(server_.counters().dropped, 0u);
}

}  // namespace
}  // namespace atp::daemon
