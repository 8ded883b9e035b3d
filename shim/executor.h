// SPDX-License-Identifier: Apache-2.0
// What movers run on. A mover is a state machine that says what it waits for; an executor waits and
// lets it act. Two executors run the same movers: real threads (on a real driver), and the
// program's own thread playing the movers' lanes in virtual time (on the simulated machine).
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace atp::shim {

struct Poll {
  enum class Kind {
    kIdle,   // nothing to do until some state changes (Executor::Changed)
    kEvent,  // waits for `event`; OnEvent is called when it has completed
    kReady,  // Act may be called
  };
  Kind kind = Kind::kIdle;
  CUevent event = nullptr;
};

class Mover {
 public:
  virtual ~Mover() = default;
  virtual const char* name() const = 0;
  virtual Poll Look() = 0;            // the lock is held
  virtual void OnEvent(CUevent) = 0;  // the lock is held
  // Issues one driver call. Called with the lock held; releases it during the call. Finish follows,
  // at the moment at which the call has returned, and makes its effects known.
  virtual void Act(std::unique_lock<std::mutex>& lock) = 0;
  virtual void Finish() = 0;  // the lock is held
};

class Executor {
 public:
  virtual ~Executor() = default;
  // State that movers look at has changed. The lock is held.
  virtual void Changed() = 0;
  // The program's thread gives the movers a turn, up to its own now. The lock is held.
  virtual void CatchUp(std::unique_lock<std::mutex>& lock) = 0;
  // Blocks the program's thread until `done()`. False when that cannot come true or takes too long:
  // the caller lets the program go on.
  virtual bool Await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) = 0;
  // The program's thread is about to block on `events`; movers get their turns meanwhile. The lock
  // is held.
  virtual void AwaitEvents(std::unique_lock<std::mutex>& lock, std::span<const CUevent> events) = 0;
  virtual void Stop() = 0;
};

// What executors ask of the driver; tests replace it.
struct ThreadCalls {
  std::function<void()> enter;  // on each mover's thread, once: context, capture mode
  std::function<void(CUevent)> event_synchronize;  // blocks
};
struct LaneCalls {  // sim/host_symbols.h
  uint32_t (*lane)(uint32_t) = nullptr;
  uint64_t (*now)() = nullptr;
  int (*wait_any)(const CUevent*, uint32_t, uint64_t) = nullptr;
};

std::unique_ptr<Executor> MakeThreadExecutor(std::mutex* mutex, ThreadCalls calls,
                                             std::vector<Mover*> movers);
// Movers take the lanes first_lane, first_lane + 1, ...; one more lane is the executor's own.
std::unique_ptr<Executor> MakeLaneExecutor(LaneCalls calls, std::vector<Mover*> movers,
                                           uint32_t first_lane);

}  // namespace atp::shim
