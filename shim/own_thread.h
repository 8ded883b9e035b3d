// SPDX-License-Identifier: Apache-2.0
// A thread of ours in the program: takes none of its signals, is waited for by nobody, and owns
// what it works on.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <system_error>
#include <thread>
#include <utility>

namespace atp::shim {

// `name`: at most 15 characters. False: the system has no thread left.
template <typename Body>
bool StartOwnThread(const char* name, Body body) {
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  bool started = true;
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    thread.detach();
  } catch (const std::system_error&) {
    started = false;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  return started;
}

}  // namespace atp::shim
