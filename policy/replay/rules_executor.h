// SPDX-License-Identifier: Apache-2.0
// Replays a policy that decides while the program runs (rules.h): the driver by faults, with or
// without prefetches ahead. One thread; no I/O.
#pragma once

#include <vector>

#include "policy/replay/executor.h"
#include "policy/replay/rules.h"

namespace atp::policy {

class RulesExecutor : public Executor {
 public:
  RulesExecutor(const Trace& trace, const Uses& uses, const ReplayOptions& options,
                const Rules& rules);

 private:
  void Prepare() override;
  void BeginWait() override;
  void Pump() override;
  bool Serve(bool stuck) override;
  void OnStart() override;
  bool BirthsNeedNoFault() const override { return rules_.populate_ahead > 0; }
  Block FaultVictim() override;

  // The next block that the prefetcher wants, in launch order; kNoBlock = nothing within its reach.
  Block NextWanted();
  Block PrefetchVictim(Instance wanted_at);
  bool Protected(uint32_t tensor) const {
    return !rules_.protected_tensors.empty() && rules_.protected_tensors[tensor];
  }
  bool Remote(uint32_t tensor) const { return !rules_.remote.empty() && rules_.remote[tensor]; }
  Instance Horizon(uint32_t launches_ahead) const;
  void Rewind();

  const Rules rules_;
  // Where the search for the next wanted block stands.
  Instance scan_ = 0;
  size_t scan_tensor_ = 0;
  Block scan_block_ = 0;
};

}  // namespace atp::policy
