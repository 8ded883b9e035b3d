// SPDX-License-Identifier: Apache-2.0
#include "shim/daemon_link.h"

#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "protocol/message.h"
#include "shim/own_thread.h"

namespace atp::shim {
namespace {

using namespace std::chrono_literals;
using protocol::Fd;
using protocol::Message;
using protocol::MessageKind;

// A daemon may be starting anew; later than this an answer is of little use.
constexpr std::chrono::milliseconds kPauses[] = {0ms, 100ms, 500ms, 2000ms};
constexpr auto kAnswerWithin = 2000ms;

// By it the daemon knows which messages come from one process.
uint64_t Job() {
  static const uint64_t job = [] {
    uint64_t drawn = 0;
    if (getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) drawn = 0;
    return drawn != 0 ? drawn : static_cast<uint64_t>(getpid());
  }();
  return job;
}

// What another user's daemon is told, that user reads. Only root can make the machine's socket, and
// whom ATP_SOCKET names is trusted.
bool Trusted(const Fd& socket, const std::string& path) {
  if (path == protocol::kMachineSocket || getenv("ATP_SOCKET") != nullptr) return true;
  const auto user = protocol::UserOf(socket);
  return user == 0u || user == geteuid();
}

// A connection over which this has been said; none: nobody listens.
Fd Say(MessageKind kind, const std::vector<uint8_t>& body) {
  Message message;
  message.kind = kind;
  message.job = Job();
  for (const std::string& path : protocol::SocketPaths()) {
    Fd socket = protocol::Connect(path);
    if (!socket || !Trusted(socket, path)) continue;
    Fd bodies[] = {protocol::MakeBody(body)};
    if (protocol::Send(socket, message, bodies)) return socket;
  }
  return {};
}

std::optional<std::vector<protocol::Learned>> AskOnce(const std::vector<uint8_t>& fingerprint) {
  const Fd socket = Say(MessageKind::kAsk, fingerprint);
  if (!socket || !protocol::AwaitReadable(socket, kAnswerWithin / 1ms)) return std::nullopt;
  bool closed = false;
  const auto received = protocol::Receive(socket, &closed);
  if (!received || received->message.kind != MessageKind::kAnswer) return std::nullopt;
  std::vector<protocol::Learned> answer;
  for (const Fd& body : received->bodies) {
    std::vector<uint8_t> bytes;
    std::string error;
    protocol::Learned learned;
    if (protocol::ReadBody(body, protocol::kMostLearnedBytes, &bytes) &&
        protocol::Read(bytes, &learned, &error)) {
      answer.push_back(std::move(learned));
    }
  }
  return answer;
}

}  // namespace

void DaemonQuestion::Ask(protocol::Fingerprint fingerprint) {
  if (protocol::SocketPaths().empty()) return;
  state_ = std::make_shared<State>();
  const bool started =
      StartOwnThread("atp-ask", [state = state_, bytes = protocol::Write(fingerprint)] {
        for (const auto pause : kPauses) {
          std::this_thread::sleep_for(pause);
          auto answer = AskOnce(bytes);
          std::lock_guard lock(state->mutex);
          state->attempted = true;
          state->ready = answer.has_value();
          if (answer) state->answer = std::move(*answer);
          state->tried.notify_all();
          if (state->ready) return;
        }
      });
  if (!started) state_.reset();
}

void DaemonQuestion::Await(std::chrono::milliseconds most) const {
  if (state_ == nullptr) return;
  std::unique_lock lock(state_->mutex);
  state_->tried.wait_for(lock, most, [&] { return state_->attempted; });
}

bool DaemonQuestion::Take(std::vector<protocol::Learned>* answer) {
  if (!Ready()) return false;
  {
    std::lock_guard lock(state_->mutex);
    *answer = std::move(state_->answer);
  }
  state_.reset();
  return true;
}

void TellDaemon(protocol::Learned learned, bool at_once) {
  static std::atomic<uint64_t> numbered{0};
  const uint64_t number = ++numbered;
  const auto tell = [number](const protocol::Learned& what) {
    static std::mutex mutex;
    static uint64_t newest = 0;
    const std::vector<uint8_t> body = protocol::Write(what);
    std::lock_guard lock(mutex);
    if (number < newest) return;
    newest = number;
    Say(MessageKind::kTell, body);
  };
  if (protocol::SocketPaths().empty()) return;
  if (at_once) return tell(learned);
  StartOwnThread("atp-tell", [tell, what = std::move(learned)] { tell(what); });
}

std::optional<uint64_t> AskForShare(const protocol::ShareReport& report) {
  const Fd socket = Say(MessageKind::kShare, protocol::Write(report));
  if (!socket || !protocol::AwaitReadable(socket, kAnswerWithin / 1ms)) return std::nullopt;
  bool closed = false;
  const auto received = protocol::Receive(socket, &closed);
  if (!received || received->message.kind != MessageKind::kAnswer) return std::nullopt;
  return received->message.number;
}

}  // namespace atp::shim
