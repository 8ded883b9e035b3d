// SPDX-License-Identifier: Apache-2.0
// The figures of the daemon for Prometheus (docs/metrics.md), by HTTP at one address. Runs in the
// server's thread: whoever has the descriptor watched calls Serve when it can be read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

struct MHD_Daemon;

namespace atp::daemon {

class Metrics {
 public:
  // `address`: "127.0.0.1:9464" or "[::1]:9464". `text`: what is answered. Throws
  // std::runtime_error: no such address, or it is taken.
  Metrics(const std::string& address, std::function<std::string()> text);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  int descriptor() const;
  void Serve();
  uint16_t port() const;  // that was given where 0 was asked for

 private:
  struct Stop {
    void operator()(MHD_Daemon* server) const;
  };
  std::function<std::string()> text_;
  std::unique_ptr<MHD_Daemon, Stop> server_;
};

}  // namespace atp::daemon
