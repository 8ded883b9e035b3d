// SPDX-License-Identifier: Apache-2.0
// Prefetch and discard as operations of a stream.
//
// On an idle stream the calling thread does the driver's work at once and only the copies are left
// to wait for (IssuedHintRun). On a busy stream the hint waits for its turn and is then done by the
// driver's one thread for such hints (DeferredHintRun). Source: NVIDIA, "Maximizing Unified Memory
// Performance in CUDA".
#pragma once

#include "sim/machine/run.h"

namespace atp::sim {

struct Hint {
  uint64_t address = 0, bytes = 0;
  bool prefetch = true;
  bool discard = false;
  int location = kHost;
};

// Does the driver's work of a hint; the calling thread's clock is pass->cpu.
MachineStatus PerformHint(World* world, Pass* pass, const Hint& hint);

class IssuedHintRun : public Run {
 public:
  IssuedHintRun(World* world, const Ready& done) : world_(*world), done_(done) {}
  Time Step(Time now) override {
    Time end = world_.link.Resolve(done_);
    return end > now ? end : kDone;
  }

 private:
  World& world_;
  const Ready done_;
};

class DeferredHintRun : public Run {
 public:
  DeferredHintRun(World* world, const Hint& hint) : world_(*world), hint_(hint) {}
  Time Step(Time now) override;

 private:
  World& world_;
  const Hint hint_;
  Time wanted_ = -1;  // when the driver's thread has been told
  bool performed_ = false;
  Ready done_;
};

}  // namespace atp::sim
