// SPDX-License-Identifier: Apache-2.0
// Lower bounds on the time of one period (seconds). Formulas: docs/policy.md, "Bounds".
#pragma once

#include "policy/trace.h"

namespace atp::policy {

double ComputeSeconds(const Trace& trace);
// A launch starts when all it touches is resident; every live exit is copied.
double BoundClosed(const Trace& trace, Bytes memory);
// As BoundClosed, but what the period never writes leaves free. Targets are stated on it.
double BoundSafe(const Trace& trace, Bytes memory);
// No policy without recomputation can be faster: launches may overlap their own transfers; clean
// and overwritten data leave free.
double BoundAny(const Trace& trace, Bytes memory);

}  // namespace atp::policy
