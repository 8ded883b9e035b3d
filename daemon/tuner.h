// SPDX-License-Identifier: Apache-2.0
// Searches for better choices on a thread of its own (nice 19, a share of one core), one workload
// at a time. Whoever owns it asks now and then whether there is a result. One other thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "daemon/tune_search.h"

namespace atp::daemon {

// How long to rest after so much work, so that work is that share of the time.
std::chrono::duration<double> RestAfter(std::chrono::duration<double> work, double share);

class Tuner {
 public:
  Tuner() = default;
  ~Tuner();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  struct Limits {
    double share;  // of one core, above 0 and at most 1
    int nice;
  };
  void Start(protocol::Learned learned, SearchOptions options, const Limits& limits);
  bool busy() const { return thread_.joinable(); }
  // The result, once.
  std::optional<Found> Take();
  // Until the search under way has a result.
  void Await();
  // Ends a search; there is no result then.
  void Stop();

 private:
  bool Rest(double share);

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stop_ = false;
  std::optional<Found> found_;
  std::chrono::duration<double> worked_{0};
};

}  // namespace atp::daemon
