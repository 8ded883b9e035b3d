// SPDX-License-Identifier: Apache-2.0
// DeepUM-like (Jung et al., ASPLOS'23): tables of which launch follows which, and which blocks it
// touches; prefetches the blocks of the next launches and evicts ahead what they do not need,
// oldest migration first. Taken here as fully trained: its successors are always right. The
// look-ahead of 8 launches is the one that the G10 artifact uses for its DeepUM+.
#include "policy/baselines/baseline.h"

namespace atp::policy {

Policy MakeDeepUm(const Trace&, const PlanOptions&) {
  constexpr uint32_t kLaunchesAhead = 8;
  Rules rules;
  rules.prefetch_ahead = kLaunchesAhead;
  rules.populate_ahead = kLaunchesAhead;
  rules.keep_ahead = kLaunchesAhead;
  return {.how = rules};
}

}  // namespace atp::policy
