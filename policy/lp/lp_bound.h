// SPDX-License-Identifier: Apache-2.0
// bound_safe as a linear program: an offline certificate, seconds to minutes. Solved by CLP with
// cuts added as they are violated; any round's value is a valid bound, so that stopping early only
// makes it weaker. A target of its own (atp_policy_lp), so that the shim never links the solver.
//
// Variables: s_k >= 0, the pause after launch k (its window is t_k = c_k + s_k), and y_I in [0, 1],
// the largest part of inactive interval I (policy/lifetimes.h) that is ever away. With W[a,b] = the
// sum of t over the cyclic launches a..b, plus s of the launch before a (its data may leave in that
// pause):
//   minimise   sum of t
//   memory     sum over I around k of bytes_I y_I                     >= live_k - memory       for
//   each launch k link       in(a,b) a1 + out(a,b) b1 <= W[a,b],  out(a,b) a2 + in(a,b) b2 <=
//   W[a,b]       for each window
//              in = bytes_I y_I of all I inside the window, out = of those that are copied out; a1
//              = 1/b_H, b1 = (1 - b'_H/b_H)/b'_D, and a2, b2 with the directions exchanged:
//              independent links have b1 = b2 = 0 (the region is the one of policy/link_budget.h)
//   by launch  sum over I around k that began before a (or leave free) and end after b of bytes_I
//   y_I
//              + b_D W[a,k-1] + b_H W[k,b]                            >= live_k - memory       for
//              each a <= k <= b
// Why it is a bound: in any periodic schedule in which a launch starts when its data is resident,
// let y_I be the largest part of I that is away at any moment; all of it has left and come back
// inside I, and what is away during k has left before k: each row counts what the link could carry.
// Recomputation (BoundRecomputeLp) adds r_I in [0, 1] for each interval of RecomputeSet's
// candidates, the part of I that is dropped, and p_I = the time of its producer:
//   y_I + r_I <= 1,   minimise   sum of t + sum of p_I r_I
//   r_I counts with y_I in "memory" and always in "by launch", never on the link;
//   W[a,b] gains p_I r_I of every I that is not over before a and has begun by b, as the producer
//   may run anywhere between the two uses.
// What else a chain has to run, and that inputs must be there then, is left out: it stays a bound.
// Pure; any thread.
#pragma once

#include <string>

#include "policy/recompute.h"
#include "policy/trace.h"

namespace atp::policy {

struct LpOptions {
  bool clean_leaves_free =
      true;  // as bound_safe: what the period never writes leaves without a copy
  int max_rounds = 60;
  int max_stalled = 15;     // rounds in a row that do not raise the value
  double tolerance = 1e-5;  // relative; cuts violated by less are not added
};

struct LpBound {
  double seconds = 0;      // a valid lower bound, whatever `converged` says
  bool converged = false;  // no cut is violated any more
  int rounds = 0, rows = 0, columns = 0;
  std::string error;  // not empty: the solver failed, `seconds` is the compute time
};

LpBound BoundSafeLp(const Trace& trace, Bytes memory, const LpOptions& options = {});
// No plan that drops only what RecomputeSet allows is faster.
LpBound BoundRecomputeLp(const Trace& trace, Bytes memory, const RecomputeOptions& recompute = {},
                         const LpOptions& options = {});

}  // namespace atp::policy
