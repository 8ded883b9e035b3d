// SPDX-License-Identifier: Apache-2.0
#include "protocol/message.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "daemon_generated.h"

namespace atp::protocol {
namespace {

struct Pair {
  Fd one, two;
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    one = Fd(ends[0]);
    two = Fd(ends[1]);
  }
};

Message Sample() {
  Message message;
  message.kind = MessageKind::kTell;
  message.job = 0x123456789abcdef0;
  message.text = "words";
  message.number = 42;
  return message;
}

TEST(Message, ComesOverWithItsBodies) {
  Pair pair;
  const std::vector<uint8_t> large(3u << 20, 7), small = {1, 2, 3};
  Fd bodies[] = {MakeBody(large), MakeBody(small)};
  ASSERT_TRUE(Send(pair.one, Sample(), bodies));
  bool closed = false;
  const auto received = Receive(pair.two, &closed);
  ASSERT_TRUE(received);
  EXPECT_EQ(received->message.kind, MessageKind::kTell);
  EXPECT_EQ(received->message.job, Sample().job);
  EXPECT_EQ(received->message.text, "words");
  EXPECT_EQ(received->message.number, 42u);
  ASSERT_EQ(received->bodies.size(), 2u);
  std::vector<uint8_t> bytes;
  ASSERT_TRUE(ReadBody(received->bodies[0], 4u << 20, &bytes));
  EXPECT_EQ(bytes, large);
  EXPECT_FALSE(ReadBody(received->bodies[0], 2u << 20, &bytes));  // longer than is wanted
  ASSERT_TRUE(ReadBody(received->bodies[1], 4, &bytes));
  EXPECT_EQ(bytes, small);
}

TEST(Message, NothingThereIsNotTheEnd) {
  Pair pair;
  bool closed = true;
  EXPECT_FALSE(Receive(pair.two, &closed));
  EXPECT_FALSE(closed);
  pair.one = Fd();
  EXPECT_FALSE(Receive(pair.two, &closed));
  EXPECT_TRUE(closed);
}

// What is not sealed could change, shrink or block under its reader.
TEST(Message, OnlySealedMemoryFilesAreRead) {
  std::vector<uint8_t> bytes;
  const Fd open_file(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_FALSE(ReadBody(open_file, 100, &bytes));
  const Fd device(open("/dev/zero", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(ReadBody(device, 100, &bytes));
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const Fd reader(ends[0]), writer(ends[1]);
  EXPECT_FALSE(ReadBody(reader, 100, &bytes));
}

TEST(Message, AQueueThatIsFullIsNotWaitedFor) {
  Pair pair;
  int sent = 0;
  while (sent < 100000 && Send(pair.one, Sample())) ++sent;
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, 100000);
}

TEST(Message, WhatIsNoMessageEndsTheConnection) {
  Pair pair;
  ASSERT_EQ(send(pair.one.get(), "no message", 10, 0), 10);
  bool closed = false;
  EXPECT_FALSE(Receive(pair.two, &closed));
  EXPECT_TRUE(closed);
}

TEST(Message, OneVersionNewerIsTaken) {
  Message message = Sample();
  message.version = kMessageVersion + 1;
  EXPECT_TRUE(ReadMessage(WriteMessage(message)));
  message.version = kMessageVersion + 2;
  EXPECT_FALSE(ReadMessage(WriteMessage(message)));
  message.version = 0;
  EXPECT_FALSE(ReadMessage(WriteMessage(message)));
}

// A sender one version newer may have fields at the end that this one does not know.
TEST(Message, FieldsOfANewerVersionAreLeftAlone) {
  flatbuffers::FlatBufferBuilder to;
  const auto text = to.CreateString("train");
  const auto start = to.StartTable();
  to.AddElement<uint32_t>(wire::Message::VT_VERSION, kMessageVersion + 1, 0);
  to.AddElement<uint32_t>(wire::Message::VT_KIND, 5, 0);
  to.AddElement<uint64_t>(wire::Message::VT_JOB, 7, 0);
  to.AddOffset(wire::Message::VT_TEXT, text);
  to.AddElement<uint64_t>(wire::Message::VT_NUMBER, 9, 0);
  to.AddElement<uint64_t>(wire::Message::VT_NUMBER + 2, 11, 0);
  wire::FinishMessageBuffer(to, flatbuffers::Offset<wire::Message>(to.EndTable(start)));
  const auto message = ReadMessage({to.GetBufferPointer(), to.GetSize()});
  ASSERT_TRUE(message);
  EXPECT_EQ(message->kind, MessageKind::kStatus);
  EXPECT_EQ(message->job, 7u);
  EXPECT_EQ(message->text, "train");
  EXPECT_EQ(message->number, 9u);
}

TEST(Message, DamagedBytesAreRefusedOrRead) {
  const std::vector<uint8_t> whole = WriteMessage(Sample());
  std::mt19937_64 random(1);
  for (int run = 0; run < 20000; ++run) {
    std::vector<uint8_t> bytes = whole;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<uint8_t>(random());
    }
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    const auto message = ReadMessage(bytes);
    EXPECT_LE(message ? message->text.size() : 0, bytes.size());
  }
}

TEST(Message, TheSocketIsTheUsersThenTheMachines) {
  setenv("XDG_RUNTIME_DIR", "/run/user/7", 1);
  unsetenv("ATP_SOCKET");
  EXPECT_EQ(SocketPaths(),
            (std::vector<std::string>{"/run/user/7/atp/atpd.sock", "/run/atp/atpd.sock"}));
  setenv("ATP_SOCKET", "/some/where", 1);
  EXPECT_EQ(SocketPaths(), std::vector<std::string>{"/some/where"});
  setenv("ATP_SOCKET", "off", 1);
  EXPECT_TRUE(SocketPaths().empty());
  unsetenv("ATP_SOCKET");
}

}  // namespace
}  // namespace atp::protocol
