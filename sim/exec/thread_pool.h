// SPDX-License-Identifier: Apache-2.0
// Threads that help the launching thread. Started at first use; a forked child starts its own.
#pragma once

#include <functional>

namespace atp::sim::exec {

unsigned ExecutionThreads();

// Runs `work` on the calling thread and on up to `helpers` others, and returns when all of them
// have come back.
void RunOnThreads(unsigned helpers, const std::function<void()>& work);

}  // namespace atp::sim::exec
