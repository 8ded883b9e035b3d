// SPDX-License-Identifier: Apache-2.0
// Memory without limit: what the program takes when nothing has to move.
#include "policy/baselines/baseline.h"

namespace atp::policy {

Policy MakeIdeal(const Trace&, const PlanOptions&) {
  Rules rules;
  rules.populate_ahead = 1;
  return {.how = rules, .unlimited = true};
}

}  // namespace atp::policy
