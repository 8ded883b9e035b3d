// SPDX-License-Identifier: Apache-2.0
// What atpd answers to one message of one user. No sockets here. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/store.h"
#include "daemon/tuning.h"
#include "protocol/message.h"

namespace atp::daemon {

struct Reply {
  protocol::Message message;
  std::vector<std::vector<uint8_t>> bodies;
};

class Service {
 public:
  // `tuning`: may be null.
  explicit Service(Store* store, Tuning* tuning = nullptr) : store_(*store), tuning_(tuning) {}

  // None: nothing is answered. `bodies` are whatever the peer has sent.
  std::optional<Reply> Answer(uint32_t user, const protocol::Message& message,
                              const std::vector<protocol::Fd>& bodies);
  uint64_t refused() const { return refused_; }

 private:
  std::optional<Reply> Ask(uint32_t user, const std::vector<uint8_t>& body);
  std::optional<Reply> Tell(uint32_t user, const protocol::Message& message,
                            const std::vector<uint8_t>& body);
  Reply Export(uint32_t user, uint64_t id);
  Reply Status(uint32_t user);
  Reply Refuse(const std::string& why);

  Store& store_;
  Tuning* tuning_;
  uint64_t refused_ = 0;
};

}  // namespace atp::daemon
