// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/rules_executor.h"

#include <algorithm>

namespace atp::policy {
namespace {

// Blocks that the evicting side keeps free ahead of the prefetches, so that both directions are
// busy at once.
constexpr Bytes kFreeBlocks = 4;

}  // namespace

RulesExecutor::RulesExecutor(const Trace& trace, const Uses& uses, const ReplayOptions& options,
                             const Rules& rules)
    : Executor(trace, uses, options), rules_(rules) {}

void RulesExecutor::Prepare() {
  for (uint32_t t = 0; t < trace_.tensors.size(); ++t) {
    if (Remote(t)) machine_.MapRemote(t);
    if (Protected(t)) machine_.Protect(t);
  }
}

Instance RulesExecutor::Horizon(uint32_t launches_ahead) const {
  return current() + std::min<Instance>(launches_ahead, uses_.launches - 1);
}

void RulesExecutor::Rewind() {
  scan_ = current() + (waiting() ? 0 : 1);
  scan_tensor_ = 0;
  scan_block_ = 0;
}

void RulesExecutor::BeginWait() { Rewind(); }
void RulesExecutor::OnStart() { Rewind(); }

Executor::Block RulesExecutor::NextWanted() {
  const Instance last = Horizon(rules_.prefetch_ahead);
  for (; scan_ <= last; ++scan_, scan_tensor_ = 0) {
    const auto& touched = uses_.touched[scan_ % uses_.launches];
    for (; scan_tensor_ < touched.size(); ++scan_tensor_, scan_block_ = 0) {
      const uint32_t tensor = touched[scan_tensor_];
      if (machine_.FullyResident(tensor) || Remote(tensor)) continue;
      scan_block_ = std::max(scan_block_, machine_.FirstBlock(tensor));
      for (; scan_block_ < machine_.EndBlock(tensor); ++scan_block_) {
        const State state = machine_.StateOf(scan_block_);
        if (state == State::kOut) return scan_block_;
        if (state == State::kUnborn && scan_ <= Horizon(rules_.populate_ahead)) return scan_block_;
      }
    }
  }
  return Machine::kNoBlock;
}

Executor::Block RulesExecutor::PrefetchVictim(Instance wanted_at) {
  const Instance keep_until = Horizon(rules_.keep_ahead);
  auto keep = [&](uint32_t t) {
    return TouchedNow(t) || Protected(t) || machine_.NextUseOf(t) <= keep_until;
  };
  if (rules_.victim == Rules::Victim::kOldestArrival) return machine_.OldestArrival(keep);
  // Never evict what is needed before the block that takes its place.
  return machine_.FurthestUse(std::max(wanted_at, keep_until), keep);
}

void RulesExecutor::Pump() {
  if (rules_.prefetch_ahead == 0 || faulting()) return;
  for (;;) {
    const Block wanted = NextWanted();
    if (wanted == Machine::kNoBlock) return;
    const Bytes bytes = machine_.BytesOf(wanted);
    // What is born in the waiting launch comes first.
    const Bytes reserve = waiting() && scan_ != current() ? RoomWanted() : 0;
    if (!machine_.HasRoom(reserve + bytes + kFreeBlocks * options_.block) &&
        !machine_.Busy(CopyDirection::kD2h)) {
      const Block victim = PrefetchVictim(scan_);
      if (victim != Machine::kNoBlock) {
        Evict(victim, options_.costs.move_seconds);
        if (!machine_.Busy(CopyDirection::kD2h)) continue;  // it left without a copy
      }
    }
    if (!machine_.HasRoom(reserve + bytes)) return;
    if (machine_.StateOf(wanted) == State::kUnborn) {
      machine_.SetNextUse(machine_.TensorOf(wanted), scan_);
      machine_.Populate(wanted);
      continue;
    }
    if (!machine_.Busy(CopyDirection::kH2d))
      machine_.StartFetch(wanted, options_.costs.move_seconds);
    return;
  }
}

Executor::Block RulesExecutor::FaultVictim() {
  if (rules_.victim == Rules::Victim::kOldestArrival) return Executor::FaultVictim();
  return machine_.FurthestUse(0, [&](uint32_t t) { return TouchedNow(t); });
}

bool RulesExecutor::Serve(bool stuck) {
  const bool prefetching = rules_.prefetch_ahead > 0;
  if (prefetching && !stuck) return false;  // copies for this launch may be on their way
  std::vector<Block> missing;
  for (uint32_t t : uses_.touched[Position()]) {
    if (machine_.FullyResident(t)) continue;
    for (Block b = machine_.FirstBlock(t); b < machine_.EndBlock(t); ++b) {
      const State state = machine_.StateOf(b);
      const bool unborn = state == State::kUnborn && !BirthsNeedNoFault();
      if (state == State::kOut || unborn) missing.push_back(b);
    }
  }
  const DriverCosts& costs = options_.costs;
  if (!missing.empty()) {
    return ServeFaults(missing, rules_.density_prefetch ? costs.faults_per_block_with_prefetch
                                                        : costs.faults_per_block_without);
  }
  return RoomWanted() > 0 && MakeRoom(RoomWanted());
}

}  // namespace atp::policy
