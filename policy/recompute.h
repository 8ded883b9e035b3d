// SPDX-License-Identifier: Apache-2.0
// Recomputation: instead of moving data out and back, it is dropped after a use and the launch that
// made it runs again before the next. A trace in which something is recomputed is again a trace,
// with launches added, so that bounds, planner and replay need to know little about it
// (Launch::restores). What to recompute is chosen in recompute_plan.h. Pure; one thread.
//
// Times are seconds, sizes bytes, places launch indices of the period. Legal is only what drops
// whole tensors that their producer overwrites in full without reading, restores them in the same
// period, and finds the producer's inputs as they were. What is not there then is made again first:
// a chain. Sources: ATP (ACM TACO 22(1), 2024) bounds chains by three and takes the most bytes per
// second first; SuperNeurons (PPoPP'18) and Capuchin (ASPLOS'20) run producers again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

struct RecomputeOptions {
  // Per launch: it gives the same bits when it runs again from the same inputs, and overwrites in
  // full what it writes without reading it. Empty = all do: whoever names a trace vouches for it.
  std::vector<bool> may_run_again;
  // Per launch: what it touches is not certain, so nothing that it stands between may be dropped:
  // no launch runs again behind it for what was made before it. Empty = all is certain.
  std::vector<bool> unsure;
  uint32_t longest_chain = 3;  // launches that run again for one use
};

// A tensor dropped after `last_use` and made again before `next_use` (same period).
struct Recomputation {
  uint32_t tensor = 0;
  uint32_t last_use = 0, next_use = 0;
  uint32_t producer = 0;  // the launch that runs again for it
  double seconds = 0;     // of the whole chain, if nothing else is dropped
  Bytes bytes = 0;
  // Bytes saved for each second of running again: ATP's rule.
  double Efficiency() const { return seconds > 0 ? double(bytes) / seconds : 1e300; }
};

struct Rerun {
  uint32_t position = 0;           // in the new trace
  uint32_t producer = 0;           // the launch of the old trace that it repeats
  uint32_t before = 0;             // the launch of the old trace that it stands before
  std::vector<uint32_t> restores;  // tensors that it brings back; the rest of what it writes holds
                                   // the same data already, or is thrown away
};
// The tensor holds nothing between two launches of the new trace, of which the second restores it.
// It leaves without a copy and comes back without the link: no Move says so.
struct Drop {
  uint32_t tensor = 0;
  uint32_t after = 0, before = 0;  // in the new trace
  Bytes bytes = 0;
};

struct Recomputed {
  Trace trace;                         // the same tensors, more launches
  std::vector<uint32_t> new_position;  // per launch of the old trace
  std::vector<Rerun> reruns;           // by position
  std::vector<Drop> drops;             // by `before`
  Bytes bytes = 0;                     // dropped
  double seconds = 0;                  // of running again
};

// The same without launches of their own: what runs again belongs to the launch that it stands
// before, which then reads and takes as much more, and restores what was dropped.
struct Folded {
  struct Drop {
    uint32_t tensor = 0;
    uint32_t producer = 0;
    uint32_t after = 0, before = 0;  // launches: the last one that used it, and the next
    Bytes bytes = 0;
  };
  Trace trace;              // as many launches as before anything was recomputed
  std::vector<Drop> drops;  // by `before`, and there in the order in which they are made again
};
Folded FoldReruns(const Recomputed& made);

// Collects recomputations that are legal together.
class RecomputeSet {
 public:
  explicit RecomputeSet(const Trace& trace, RecomputeOptions options = {});

  // All that is legal by itself, the most efficient first.
  const std::vector<Recomputation>& candidates() const { return candidates_; }
  // False, and nothing changes: with the others the chain of one would be too long. Called once for
  // a candidate.
  bool Add(const Recomputation& candidate);
  const std::vector<Recomputation>& chosen() const { return chosen_; }
  // Takes back all but the first so many.
  void Shrink(size_t count);
  Recomputed Apply() const;

 private:
  friend class Reruns;
  struct Use {
    uint32_t launch;
    bool reads, writes;
  };
  // What must run for a tensor to be there at a launch.
  struct Chain {
    uint32_t length = 0;
    double seconds = 0;
    std::vector<uint32_t> kept;  // that it reads and finds there
  };

  const Use* LastBefore(uint32_t tensor, uint32_t launch, bool writing) const;
  std::optional<uint32_t> Producer(uint32_t tensor, uint32_t use) const;
  bool Unchanged(uint32_t tensor, uint32_t since, uint32_t until) const;
  bool Certain(uint32_t since, uint32_t until) const;
  bool Alive(uint32_t tensor, uint32_t launch) const;
  bool Dropped(uint32_t tensor, uint32_t launch) const;
  bool Extend(uint32_t tensor, uint32_t use, uint32_t depth, Chain* chain) const;
  void Depend(size_t chosen, const Chain& chain);
  void FindCandidates();
  void Forget();  // the last one chosen

  const Trace& trace_;
  RecomputeOptions options_;
  std::vector<std::vector<Use>> uses_;  // per tensor, ascending
  std::vector<uint32_t> unsure_;        // per launch: how many up to it; empty = none
  std::vector<Recomputation> candidates_, chosen_;
  // Per tensor: its chosen drops, and those whose chains find it there; indices into `chosen_`.
  std::vector<std::vector<size_t>> drops_, needed_by_;
};

}  // namespace atp::policy
