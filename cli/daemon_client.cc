// SPDX-License-Identifier: Apache-2.0
#include "cli/daemon_client.h"

#include "cli/error.h"

namespace atp::cli {
namespace {

using protocol::Fd;

constexpr int kAnswerMilliseconds = 10000;
constexpr uint64_t kMostBytes = 1u << 30;  // our own daemon's answer

std::vector<std::string> Places(const std::string& socket) {
  return socket.empty() ? protocol::SocketPaths() : std::vector<std::string>{socket};
}

Fd ConnectToDaemon(const std::string& socket) {
  for (const std::string& path : Places(socket)) {
    if (Fd connected = protocol::Connect(path)) return connected;
  }
  return {};
}

}  // namespace

bool DaemonListens(const std::string& socket) { return static_cast<bool>(ConnectToDaemon(socket)); }

DaemonAnswer AskDaemon(const std::string& socket, const protocol::Message& message,
                       const std::vector<uint8_t>* body) {
  const Fd connected = ConnectToDaemon(socket);
  if (!connected) {
    std::string places;
    for (const std::string& path : Places(socket)) places += (places.empty() ? "" : " and ") + path;
    throw CommandError(
        1, places.empty() ? "ATP_SOCKET switches the daemon off" : "no atpd listens at " + places);
  }
  std::vector<Fd> bodies;
  if (body != nullptr) bodies.push_back(protocol::MakeBody(*body));
  if (!protocol::Send(connected, message, bodies)) throw CommandError(1, "atpd has hung up");
  bool closed = false;
  if (!protocol::AwaitReadable(connected, kAnswerMilliseconds)) {
    throw CommandError(1, "atpd does not answer");
  }
  const auto received = protocol::Receive(connected, &closed);
  if (!received) throw CommandError(1, "atpd has hung up");
  if (received->message.kind == protocol::MessageKind::kRefused) {
    throw CommandError(1, "atpd refuses: " + received->message.text);
  }
  DaemonAnswer answer;
  answer.number = received->message.number;
  for (const Fd& fd : received->bodies) {
    if (!protocol::ReadBody(fd, kMostBytes, &answer.bodies.emplace_back())) {
      throw CommandError(1, "the answer of atpd cannot be read");
    }
  }
  return answer;
}

}  // namespace atp::cli
