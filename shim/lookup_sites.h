// SPDX-License-Identifier: Apache-2.0
// From which places in the code the program's look-ups come, so that the report can say which
// library asks in which way. A table of return addresses: a few nanoseconds a look-up, no heap, any
// thread. What does not fit (a program with hundreds of places) is only in the totals.
#pragma once

#include <cstdint>

#include "shim/findings.h"

namespace atp::shim {

// One more look-up from there: in the totals, and in the table.
void Count(Lookup way, const void* caller);
// Calls visit for each place and way.
void ForEachLookupSite(void (*visit)(Lookup way, const void* caller, uint64_t count, void* context),
                       void* context);

}  // namespace atp::shim
