// SPDX-License-Identifier: Apache-2.0
// Host functions and stream callbacks run on a thread of the driver, in the order in which they
// became ready, so that they may wait for the program's own threads. They must not call the driver:
// calls from them answer CUDA_ERROR_NOT_PERMITTED. What follows in the stream waits for their
// return. Start is called under the driver's lock; the functions run without it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>

#include "sim/driver/task.h"

namespace atp::sim {

class HostFunctions {
 public:
  explicit HostFunctions(Driver& driver) : driver_(driver) {}
  void Start(Stream& stream, const HostTask& task);

 private:
  struct Ready {
    Stream* stream;
    uint64_t number;  // of the stream: it may be gone when the function returns
    HostTask task;
  };
  void Loop();
  void Run(const Ready& ready);

  Driver& driver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Ready> ready_;
  bool running_ = false;
};

}  // namespace atp::sim
