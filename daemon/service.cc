// SPDX-License-Identifier: Apache-2.0
#include "daemon/service.h"

#include <cstdlib>
#include <string>

#include "daemon/likeness.h"
#include "daemon/status.h"

namespace atp::daemon {

using protocol::Message;
using protocol::MessageKind;

// More than a few are not worth the reader's time.
constexpr size_t kMostAnswers = 3;
static_assert(kMostAnswers <= protocol::kMostBodies);

namespace {

Reply Done(uint64_t number) {
  Reply reply;
  reply.message.kind = MessageKind::kAnswer;
  reply.message.number = number;
  return reply;
}

}  // namespace

std::optional<Reply> Service::Answer(uint32_t user, const Message& message,
                                     const std::vector<protocol::Fd>& bodies, int process) {
  switch (message.kind) {
    case MessageKind::kStatus:
      return Status(user);
    case MessageKind::kForget:
      return Done(store_.Forget(user, message.number));
    case MessageKind::kExport:
      return Export(user, message.number);
    case MessageKind::kBudget:
      return Budget(user, message);
    default:
      break;
  }
  // Whoever only looks, or reports once a second, does not keep tuning from its work.
  const bool reports = message.kind == MessageKind::kShare;
  if (tuning_ != nullptr && !reports) tuning_->Busy(Tuning::Clock::now());
  std::vector<uint8_t> body;
  if (bodies.size() != 1 || !ReadBody(bodies[0], protocol::kMostLearnedBytes, &body)) {
    return Refuse("one sealed memory file is expected with this message");
  }
  switch (message.kind) {
    case MessageKind::kAsk:
      return Ask(user, body);
    case MessageKind::kTell:
      return Tell(user, message, body);
    case MessageKind::kShare:
      return Share(user, process, message, body);
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

std::optional<Reply> Service::Tell(uint32_t user, const Message& message,
                                   const std::vector<uint8_t>& body) {
  protocol::Learned learned;
  std::string error;
  if (!protocol::Read(body, &learned, &error)) return Refuse("what was told is " + error);
  if (book_ != nullptr && message.text != "import") book_->Learn(message.job, learned);
  if (message.text == "import") {  // choices come along, a trial does not
    learned.trial = protocol::TrialState::kNone;
    const bool kept = store_.Remember(user, learned, protocol::Write(learned), message.job) != 0;
    return kept ? Done(1) : Refuse("it could not be written to the store");
  }
  protocol::Learned stored;
  const auto known = store_.Known(user, KeyOf(learned));
  const bool is_known = known && protocol::Read(*known, &stored, &error);
  Store::Decision decision;
  MergeTuning(is_known ? &stored : nullptr, &learned, &decision);
  const uint64_t id = store_.Remember(user, learned, protocol::Write(learned), message.job);
  if (id != 0 && !decision.what.empty()) store_.Decide(id, decision);
  return std::nullopt;
}

Reply Service::Export(uint32_t user, uint64_t id) {
  auto learned = store_.Get(user, id);
  if (!learned) return Refuse("there is no workload " + std::to_string(id));
  Reply reply = Done(1);
  reply.bodies.push_back(std::move(*learned));
  return reply;
}

Reply Service::Status(uint32_t user) {
  const std::string json = StatusJson(&store_, user, refused_, tuning_, book_);
  Reply reply = Done(0);
  reply.bodies.emplace_back(json.begin(), json.end());
  return reply;
}

Reply Service::Refuse(const std::string& why) {
  ++refused_;
  Reply reply;
  reply.message.kind = MessageKind::kRefused;
  reply.message.text = why;
  return reply;
}

Reply Service::Share(uint32_t user, int process, const Message& message,
                     const std::vector<uint8_t>& body) {
  if (book_ == nullptr) return Refuse("no memory is shared out here");
  protocol::ShareReport report;
  std::string error;
  if (!protocol::Read(body, &report, &error)) return Refuse("the report is " + error);
  return Done(book_->Report(user, message.job, process, report));
}

Reply Service::Budget(uint32_t user, const Message& message) {
  if (book_ == nullptr) return Refuse("no memory is shared out here");
  const int process = static_cast<int>(std::strtol(message.text.c_str(), nullptr, 10));
  if (message.job == 0 && process <= 0) return Refuse("a job or a process is expected");
  const int count = book_->SetMost(user, message.job, process, message.number);
  return count > 0 ? Done(static_cast<uint64_t>(count)) : Refuse("you have no such job on a card");
}

}  // namespace atp::daemon
