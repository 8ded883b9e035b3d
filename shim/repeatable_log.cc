// SPDX-License-Identifier: Apache-2.0
#include "shim/recompute_gain.h"
#include "shim/repeatable.h"
#include "shim/shimlog.h"

namespace atp::shim {

void LogRepeatable(const Repeatable& repeatable) {
  ATP_LOG_INFO("%llu of %zu launches of the period may run again; they write %s",
               static_cast<unsigned long long>(repeatable.count), repeatable.launches.size(),
               HumanBytes(repeatable.written_bytes).text());
  if (repeatable.at_once > 0) {
    ATP_LOG_INFO("  %llu of them only at once: they use small memory that is not watched",
                 static_cast<unsigned long long>(repeatable.at_once));
  }
  for (const auto& [why, launches] : repeatable.refused) {
    ATP_LOG_INFO("  %llu may not: %s", static_cast<unsigned long long>(launches), why.c_str());
  }
}

void LogGain(const RecomputeGain& gain) {
  ATP_LOG_INFO(
      "%llu launches write whole ranges that could be dropped; %zu would run again for %.3f ms, "
      "%s dropped: a period of %.3f ms instead of %.3f ms",
      static_cast<unsigned long long>(gain.droppable), gain.producers.size(),
      gain.rerun_seconds * 1e3, HumanBytes(gain.dropped_bytes).text(), gain.seconds * 1e3,
      gain.plain_seconds * 1e3);
}

}  // namespace atp::shim
