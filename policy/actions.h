// SPDX-License-Identifier: Apache-2.0
// A plan as what a runtime has to do: calls attached to launch positions, each with a deadline.
// Values only; pure; any thread. Made from a Plan; written as JSON by trace_json.h.
#pragma once

#include <cstdint>
#include <vector>

#include "policy/planner.h"
#include "policy/trace.h"

namespace atp::policy {

struct Action {
  enum class Kind {
    kAdviseReadMostly,  // the host's copy stays valid: what leaves later leaves without a copy
    kAdviseHost,        // stays in host memory, mapped by the device (Plan::mapped)
    kEvict,             // to the host
    kPrefetch,          // to the device
    kTouch,    // what the plan never moves is prefetched again where it is: drivers evict what
               // migrated longest ago, whatever its use
    kDiscard,  // its content is dead: it needs no copy when it leaves
  };
  Kind kind = Kind::kEvict;
  uint32_t tensor = 0;
  Bytes offset = 0, bytes = 0;
  // Position: kEvict and kDiscard may start once this launch has finished; all others have to be
  // complete (advice: called) before it starts.
  uint32_t launch = 0;
  bool copies = true;  // kEvict: false leaves without a copy
  // Seconds from the start of the period, in the plan; `deadline` may exceed the period where it
  // wraps. Advice is given once, before the first period.
  double start = 0, deadline = 0;
};

// Advice first, then by start.
std::vector<Action> ToActions(const Trace& trace, const Plan& plan);

}  // namespace atp::policy
