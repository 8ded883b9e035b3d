// SPDX-License-Identifier: Apache-2.0
// The shim's side of what is said to atpd (protocol/message.h). The program never waits for it:
// questions are asked on a thread of their own, and what is told is handed to the kernel or given
// up. No daemon, a slow one, one that dies in the middle: no answer, and the next exchange finds
// another one. No descriptor is kept between exchanges, because a program may close them all.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "protocol/learned.h"
#include "protocol/share_report.h"

namespace atp::shim {

// What atpd knows of a workload, asked once.
class DaemonQuestion {
 public:
  void Ask(protocol::Fingerprint fingerprint);
  // Until an answer is there or cannot be had for now. Of real time: for the simulated machine,
  // whose clock stands still meanwhile, so that what a program does never hangs on the answer's
  // speed.
  void Await(std::chrono::milliseconds most) const;
  bool Ready() const { return state_ != nullptr && state_->ready.load(std::memory_order_acquire); }
  // The answer, once; false while there is none.
  bool Take(std::vector<protocol::Learned>* answer);

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable tried;
    bool attempted = false;
    std::atomic<bool> ready{false};  // read at each launch, without the lock
    std::vector<protocol::Learned> answer;
  };
  std::shared_ptr<State> state_;
};

// On a thread of its own, or at once by the calling thread (at exit, when no thread would come to
// it). What was learned earlier never replaces what was learned later.
void TellDaemon(protocol::Learned learned, bool at_once);

// The budget that atpd gives for what is reported; none: no answer. Waits for it: on a thread of
// ours, or where the program's clock stands still.
std::optional<uint64_t> AskForShare(const protocol::ShareReport& report);

}  // namespace atp::shim
