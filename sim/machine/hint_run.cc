// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/hint_run.h"

#include <algorithm>

namespace atp::sim {

MachineStatus PerformHint(World* world, Pass* pass, const Hint& hint) {
  SpaceLock& lock = world->locks[MemberOf(hint.address)];
  pass->cpu = lock.ReadFrom(pass->cpu);
  pass->cause = Cause::kPrefetch;
  MachineStatus status = MachineStatus::kOk;
  if (hint.discard) {
    pass->cpu += world->costs.discard_call;
    // With a prefetch after it the cheap form is enough, because the prefetch ends the discard.
    world->unified.Discard(pass, hint.address, hint.bytes, /*unmap=*/!hint.prefetch);
  }
  if (hint.prefetch) {
    pass->cpu += world->costs.prefetch_call;
    status = hint.location == kHost
                 ? world->unified.PrefetchToHost(pass, hint.address, hint.bytes)
                 : world->unified.PrefetchToDevice(pass, hint.address, hint.bytes, hint.location);
  }
  lock.HoldRead(pass->cpu);
  if (hint.prefetch && hint.location == kHost) {
    // The thread has waited for every copy: when the call returns the stream is idle again, and the
    // next hint on it is not a deferred one.
    pass->done = Interconnect::After(pass->cpu);
  } else {
    pass->done.at = std::max(pass->done.at, pass->cpu) + world->costs.page_table;
  }
  return status;
}

Time DeferredHintRun::Step(Time now) {
  if (wanted_ < 0) wanted_ = now + world_.costs.deferral;
  if (!performed_) {
    Time& free = world_.deferral_free[MemberOf(hint_.address)];
    Time start = std::max(wanted_, free);
    if (start > now) return start;
    performed_ = true;
    Pass pass;
    pass.now = now;
    pass.cpu = now;
    PerformHint(&world_, &pass, hint_);
    free = pass.cpu;
    done_ = pass.done;
  }
  Time end = world_.link.Resolve(done_);
  return end > now ? end : kDone;
}

}  // namespace atp::sim
