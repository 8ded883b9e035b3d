// SPDX-License-Identifier: Apache-2.0
// The socket of atpd: accepts, asks the kernel who is there, reads one message, answers, hangs up.
// Never waits for a client: what does not take its answer at once loses it. Bounded: the oldest
// silent connection makes room for a new one, and nobody takes more than a share. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "daemon/service.h"
#include "protocol/message.h"

namespace atp::daemon {

class Server {
 public:
  static constexpr size_t kMostConnections = 512, kMostOfOneUser = 256;
  static constexpr std::chrono::seconds kSilence{5};  // then a connection is closed

  // Throws std::runtime_error: the path cannot be listened at, or another atpd does already.
  // `group`: the socket is for the members of this group too; empty = for its owner alone.
  Server(const std::string& path, const std::string& group, Service* service);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // `serve` is called by Run whenever the descriptor can be read (-1: there is none), and at least
  // once a second.
  void Also(int descriptor, std::function<void()> serve);
  // Serves until `stop` can be read. May be called again.
  void Run(int stop);

  struct Counters {
    uint64_t accepted = 0, served = 0, dropped = 0, unanswered = 0;
  };
  const Counters& counters() const { return counters_; }
  size_t connections() const { return connections_.size(); }

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection {
    protocol::Fd socket;
    uint32_t user = 0;
    Clock::time_point since;
  };
  using Place = std::list<Connection>::iterator;

  void Lock();
  void Accept();
  void Serve(Place connection);
  static bool SendReply(const protocol::Fd& socket, const Reply& reply);
  void MakeRoom(uint32_t user);
  void DropSilent();

  const std::string path_;
  Service& service_;
  protocol::Fd lock_, listener_, poll_;
  std::list<Connection> connections_;  // oldest first
  std::list<std::function<void()>> also_;
  Counters counters_;
};

}  // namespace atp::daemon
