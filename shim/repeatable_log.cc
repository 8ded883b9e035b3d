// SPDX-License-Identifier: Apache-2.0
#include "shim/repeatable.h"
#include "shim/shimlog.h"

namespace atp::shim {

void LogRepeatable(const Repeatable& repeatable) {
  ATP_LOG_INFO("%llu of %zu launches of the period may run again; they write %s",
               static_cast<unsigned long long>(repeatable.count), repeatable.launches.size(),
               HumanBytes(repeatable.written_bytes).text());
  for (const auto& [why, launches] : repeatable.refused) {
    ATP_LOG_INFO("  %llu may not: %s", static_cast<unsigned long long>(launches), why.c_str());
  }
}

}  // namespace atp::shim
