// SPDX-License-Identifier: Apache-2.0
#include "shim/lifecycle.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "shim/access_stats.h"
#include "shim/card_share.h"
#include "shim/host_promise.h"
#include "shim/placement.h"
#include "shim/reentry.h"
#include "shim/report.h"
#include "shim/resolve.h"
#include "shim/run_record.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {

std::atomic<State> g_state{State::kCold};
constinit std::mutex Standstill::one_;
std::atomic<bool> g_placing{true};
thread_local constinit unsigned t_hook_depth = 0;
thread_local constinit const void* t_hook_caller = nullptr;

namespace {

std::atomic<unsigned> trouble_count{0};
std::atomic<bool> context_in_use{false};

void AwaitEndOfStandstill() {
  while (g_state.load(std::memory_order_acquire) == State::kStandstill) sched_yield();
}

// Runs before the handlers that libraries loaded earlier have registered, so the driver and the
// runtime are still there.
void AtExit() {
  Reentry guard;
  AwaitEndOfStandstill();
  if (!Active()) return;
  if (g_placing.exchange(false)) StopHints();
  WriteAccessStats();
  WriteReport();
  EndRunRecord();
}

// The driver does not survive a fork once it is initialised, and neither do our locks and threads:
// the child only passes calls through. A parent that has only looked functions up (a launcher of
// workers) leaves the child as fresh as itself.
void AfterForkInChild() {
  t_hook_depth = 0;
  if (g_state.load() == State::kCold) return;
  ResetPromisesAfterFork();
  ResetShareAfterFork();
  const bool fresh = !context_in_use.load();
  if (fresh) ResetPlacementAfterFork();
  g_state.store(fresh ? State::kCold : State::kPassive);
}

void Start() {
  ReadSettings();
  static std::atomic<bool> registered{false};
  if (!registered.exchange(true)) {
    pthread_atfork(nullptr, nullptr, AfterForkInChild);
    atexit(AtExit);
  }
}

}  // namespace

bool EnsureStarted() {
  State state = g_state.load(std::memory_order_acquire);
  if (state == State::kActive) return true;
  if (state == State::kPassive) {
    if (!Resolved()) Resolve(nullptr, /*load=*/true);
    return false;
  }
  // A hook entered from inside the start itself (a library that the driver loads) must not wait for
  // itself; nor a driver that calls us back from a thread that it serves during a standstill.
  const bool inside = t_hook_depth > 1;
  if (inside && (state == State::kStarting || state == State::kStandstill)) return false;
  AwaitEndOfStandstill();
  State cold = State::kCold;
  if (g_state.compare_exchange_strong(cold, State::kStarting)) {
    Start();
    const bool found = Resolve(nullptr, /*load=*/true);
    const bool serve = found && Settings().policy != Policy::kOff;
    if (!found) ATP_LOG_ERROR("no driver found: libcuda.so.1 cannot be loaded (%s)", DriverPath());
    g_state.store(serve ? State::kActive : State::kPassive, std::memory_order_release);
    return serve;
  }
  while (g_state.load(std::memory_order_acquire) == State::kStarting) sched_yield();
  return Active();
}

void Trouble(const char* what) {
  const unsigned count = trouble_count.fetch_add(1) + 1;
  if (count == 1) ATP_LOG_WARN("trouble inside the shim: %s (the program goes on without)", what);
  if (count != kTroubleLimit) return;
  if (g_placing.exchange(false)) {
    StopHints();
    ATP_LOG_WARN("switched off for this process after %u cases of trouble, last: %s", count, what);
  }
}

void NoteContextInUse() { context_in_use.store(true, std::memory_order_relaxed); }

}  // namespace atp::shim
