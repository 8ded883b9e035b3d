// SPDX-License-Identifier: Apache-2.0
// Lower bounds on the time of one period, in seconds. Pure; any thread; never fail: a trace without
// link rates gives its compute time.
//
// Launches k = 1..n of c_k seconds, C their sum; M = memory; b_H, b_D = rates to the device and to
// the host; L_k = bytes alive at launch k (lifetimes.h). How they are counted in O((n + touches)
// log n), and why each holds: docs/policy.md, "Bounds".
// Sources: the window arguments of Cao, Felten, Karlin and Li (SIGMETRICS'95) and of Albers, Garg
// and Leonardi (JACM 47(6), 2000), with write-back added; intervals as in G10 (MICRO'23).
#pragma once

#include <cstdint>

#include "policy/trace.h"

namespace atp::policy {

// C.
double ComputeSeconds(const Trace& trace);
// A launch starts when all it touches is resident; every live exit is copied. With R(a,k) = bytes
// that wait at k since a launch before a, R'(k,b) = bytes that wait at k until after b:
//   C + max over a <= k of  (L_k - M - R(a,k)) / b_D - (c_a + ... + c_{k-1})     and
//   C + max over k <= b of  (L_k - M - R'(k,b)) / b_H - (c_k + ... + c_b)
// the larger one, at least C. Where the trace names a duplex pair, not less than window_bound.h
// says.
double BoundClosed(const Trace& trace, Bytes memory);
// As BoundClosed, but what the period never writes leaves free: it counts as R for every a. Targets
// are stated on it.
double BoundSafe(const Trace& trace, Bytes memory);
// Where BoundSafe or BoundClosed comes from: the data of launch `launch` that must leave after
// launch first - 1, or must come back before launch last + 1 (whichever `out` says), needs so much
// longer than the launches between. Launches of one period before or after count from 0 downwards
// or from n upwards. Without the windows of duplex links.
struct TurnPoint {
  double seconds = 0;  // by which the period exceeds its launches
  bool out = true;
  int64_t launch = 0, first = 0, last = 0;  // out: first <= launch; else launch <= last
};
TurnPoint FindTurnPoint(const Trace& trace, Bytes memory, bool clean_leaves_free);
// No policy without recomputation can be faster: launches may overlap their own transfers; clean
// and overwritten data leave free. With C_ab = time of launches a..b, U_ab = distinct bytes whose
// first touch in [a,b] reads what was there before, P_ab = distinct bytes written in [a,b] whose
// next use after it reads them:
//   max over a <= b of  C - C_ab + max(C_ab, (U_ab - M) / b_H, (P_ab - M) / b_D)
// and the same in link_region.h's terms where the trace names a duplex pair.
double BoundAny(const Trace& trace, Bytes memory);

}  // namespace atp::policy
