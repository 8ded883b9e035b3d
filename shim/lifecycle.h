// SPDX-License-Identifier: Apache-2.0
// The life of the shim in one process: cold -> starting -> active, or passive. Nothing happens
// before the program's first driver call or look-up. Passive: every hook goes straight to the
// driver (policy off, no driver, a child forked after CUDA was in use). Hints and new placement may
// end before that (at exit, after trouble of our own): memory placed so far keeps its meaning until
// the process ends. Standstill: active, but the program has to wait for a moment.
#pragma once

#include <atomic>
#include <mutex>

namespace atp::shim {

enum class State : int { kCold, kStarting, kActive, kPassive, kStandstill };
extern std::atomic<State> g_state;

inline bool Active() { return g_state.load(std::memory_order_acquire) == State::kActive; }

// Not only the entry of hooks asks: also true during a standstill.
inline bool Serving() {
  const State state = g_state.load(std::memory_order_acquire);
  return state == State::kActive || state == State::kStandstill;
}

// Slow path of every hook: starts the shim if it is cold, waits while another thread starts it.
// True when active. Any thread, re-entry guard held. Registers the exit and fork handlers, reads
// the settings; never opens a CUDA context.
bool EnsureStarted();

// While one exists, the program's other threads wait at the entry of hooks; those inside a hook
// already go on. One at a time, on a thread that is inside a hook; the time is the program's.
class Standstill {
 public:
  Standstill() : lock_(one_) { g_state.store(State::kStandstill); }
  ~Standstill() { g_state.store(State::kActive); }
  Standstill(const Standstill&) = delete;
  Standstill& operator=(const Standstill&) = delete;

 private:
  static constinit std::mutex one_;
  std::lock_guard<std::mutex> lock_;
};

// True while new memory is placed by us; false from the start of exit on, and after too much
// trouble of our own.
extern std::atomic<bool> g_placing;
inline bool Placing() { return g_placing.load(std::memory_order_relaxed); }

// Counts trouble of our own (not the program's); after kTroubleLimit hints and placement end, with
// one line in the log that names `what`.
inline constexpr unsigned kTroubleLimit = 16;
void Trouble(const char* what);

// Called once by the tracker's owner when the first allocation or launch of a context is served: a
// child forked later cannot use CUDA.
void NoteContextInUse();

}  // namespace atp::shim
