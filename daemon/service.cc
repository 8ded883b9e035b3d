// SPDX-License-Identifier: Apache-2.0
#include "daemon/service.h"

#include <string>

namespace atp::daemon {

using protocol::Message;
using protocol::MessageKind;

// More than a few are not worth the reader's time.
constexpr size_t kMostAnswers = 3;
static_assert(kMostAnswers <= protocol::kMostBodies);

std::optional<Reply> Service::Answer(uint32_t user, const Message& message,
                                     const std::vector<protocol::Fd>& bodies) {
  std::vector<uint8_t> body;
  if (bodies.size() != 1 || !ReadBody(bodies[0], protocol::kMostLearnedBytes, &body)) {
    return Refuse("one sealed memory file is expected with this message");
  }
  switch (message.kind) {
    case MessageKind::kAsk:
      return Ask(user, body);
    case MessageKind::kTell:
      return Tell(user, body);
    default:
      return Refuse("messages of kind " + std::to_string(static_cast<uint32_t>(message.kind)) +
                    " are not known here");
  }
}

std::optional<Reply> Service::Ask(uint32_t user, const std::vector<uint8_t>& body) {
  protocol::Fingerprint fingerprint;
  std::string error;
  if (!protocol::Read(body, &fingerprint, &error)) return Refuse("the fingerprint is " + error);
  Reply reply;
  reply.message.kind = MessageKind::kAnswer;
  reply.bodies = store_.Find(user, fingerprint, kMostAnswers);
  return reply;
}

std::optional<Reply> Service::Tell(uint32_t user, const std::vector<uint8_t>& body) {
  protocol::Learned learned;
  std::string error;
  if (!protocol::Read(body, &learned, &error)) return Refuse("what was told is " + error);
  store_.Remember(user, learned, body);
  return std::nullopt;
}

Reply Service::Refuse(const std::string& why) {
  ++refused_;
  Reply reply;
  reply.message.kind = MessageKind::kRefused;
  reply.message.text = why;
  return reply;
}

}  // namespace atp::daemon
