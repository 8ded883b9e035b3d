// SPDX-License-Identifier: Apache-2.0
// For the children of tests: a test that is killed (a time limit, a user) must not leave programs
// behind that run for ever.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace atp::preload {

// Between fork and exec, in the child of the thread `parent` (getpid() before the fork), which must
// outlive what the child is wanted for. Holds for the child alone, not for its own children.
inline void DieWithParent(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it has died before
}

}  // namespace atp::preload
