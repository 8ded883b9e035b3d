// SPDX-License-Identifier: Apache-2.0
#include "daemon/service.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::MessageKind;
using protocol::SampleLearned;

class ServiceTest : public testing::Test {
 protected:
  ServiceTest()
      : folder_(testing::TempDir() + "service." + std::to_string(getpid())),
        store_((std::filesystem::remove_all(folder_), folder_ / "db"), {}),
        service_(&store_) {}
  ~ServiceTest() override { std::filesystem::remove_all(folder_); }

  std::optional<Reply> Say(MessageKind kind, const std::vector<uint8_t>& body) {
    protocol::Message message;
    message.kind = kind;
    std::vector<protocol::Fd> bodies;
    bodies.push_back(protocol::MakeBody(body));
    return service_.Answer(1, message, bodies);
  }

  std::filesystem::path folder_;
  Store store_;
  Service service_;
};

TEST_F(ServiceTest, WhatIsToldIsAnsweredLater) {
  const auto fingerprint = protocol::Write(SampleLearned().fingerprint);
  auto reply = Say(MessageKind::kAsk, fingerprint);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.kind, MessageKind::kAnswer);
  EXPECT_TRUE(reply->bodies.empty());
  EXPECT_FALSE(Say(MessageKind::kTell, protocol::Write(SampleLearned())));
  reply = Say(MessageKind::kAsk, fingerprint);
  ASSERT_TRUE(reply);
  ASSERT_EQ(reply->bodies.size(), 1u);
  EXPECT_EQ(reply->bodies[0], protocol::Write(SampleLearned()));
}

TEST_F(ServiceTest, WhatCannotBeReadIsRefusedInWordsAndKeptNowhere) {
  for (const MessageKind kind : {MessageKind::kAsk, MessageKind::kTell, MessageKind{999}}) {
    const auto reply = Say(kind, {1, 2, 3});
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->message.kind, MessageKind::kRefused);
    EXPECT_FALSE(reply->message.text.empty());
  }
  EXPECT_TRUE(service_.Answer(1, {}, {}));
  EXPECT_EQ(store_.workloads(), 0u);
  EXPECT_EQ(service_.refused(), 4u);
}

}  // namespace
}  // namespace atp::daemon
