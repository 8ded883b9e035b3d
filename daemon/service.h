// SPDX-License-Identifier: Apache-2.0
// What atpd answers to one message of one user. No sockets here. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/share_book.h"
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
  // `tuning`, `book`: may be null.
  explicit Service(Store* store, Tuning* tuning = nullptr, ShareBook* book = nullptr)
      : store_(*store), tuning_(tuning), book_(book) {}

  // None: nothing is answered. `bodies` are whatever the peer has sent; `process`: who it is, 0 =
  // not to be seen from here.
  std::optional<Reply> Answer(uint32_t user, const protocol::Message& message,
                              const std::vector<protocol::Fd>& bodies, int process = 0);
  uint64_t refused() const { return refused_; }

 private:
  std::optional<Reply> Ask(uint32_t user, const std::vector<uint8_t>& body);
  std::optional<Reply> Tell(uint32_t user, const protocol::Message& message,
                            const std::vector<uint8_t>& body);
  Reply Export(uint32_t user, uint64_t id);
  Reply Status(uint32_t user);
  Reply Budget(uint32_t user, const protocol::Message& message);
  Reply Share(uint32_t user, int process, const protocol::Message& message,
              const std::vector<uint8_t>& body);
  Reply Refuse(const std::string& why);

  Store& store_;
  Tuning* tuning_;
  ShareBook* book_;
  uint64_t refused_ = 0;
};

}  // namespace atp::daemon
