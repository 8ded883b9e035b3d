// SPDX-License-Identifier: Apache-2.0
// Protects a fixed subset: for a cycle larger than memory, oldest-first evicts everything before
// its use; keeping one part and letting the rest stream through is what ObservUVM (ISCA'26) and
// ARIADNE (HPCA'26) do for such programs. Here: data that goes unused for a while, in the order of
// first use, up to half of memory and never so much that the largest launch no longer fits.
#include <algorithm>

#include "policy/baselines/baseline.h"
#include "policy/lifetimes.h"
#include "policy/replay/uses.h"

namespace atp::policy {

Policy MakeProtect(const Trace& trace, const PlanOptions& options) {
  const Bytes memory = options.memory != 0 ? options.memory : trace.device_bytes;
  const Bytes largest = LargestLaunchBytes(trace);
  Bytes left = memory > largest ? std::min(memory / 2, memory - largest) : 0;
  const Uses uses(trace);
  std::vector<InactiveInterval> intervals = FindLifetimes(trace).intervals;
  std::sort(intervals.begin(), intervals.end(),
            [&](const InactiveInterval& a, const InactiveInterval& b) {
              return std::pair(uses.positions[a.tensor].front(), a.tensor) <
                     std::pair(uses.positions[b.tensor].front(), b.tensor);
            });
  Rules rules;
  rules.protected_tensors.assign(trace.tensors.size(), false);
  for (const InactiveInterval& interval : intervals) {
    if (rules.protected_tensors[interval.tensor] || interval.bytes > left) continue;
    rules.protected_tensors[interval.tensor] = true;
    left -= interval.bytes;
  }
  return {.how = rules};
}

}  // namespace atp::policy
