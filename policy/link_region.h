// SPDX-License-Identifier: Apache-2.0
// How both directions of a link share time. In t seconds h bytes go in and d bytes go out if
//   h * a1 + d * b1 <= t   and   d * a2 + h * b2 <= t,
//   a1 = 1/b_H, b1 = (1 - b'_H/b_H) / b'_D,  a2 = 1/b_D, b2 = (1 - b'_D/b_D) / b'_H,
// with b' the rates while both are busy: the region of time-sharing "only in", "only out" and
// "both". Without a duplex pair b1 = b2 = 0. Values only.
#pragma once

#include <algorithm>

#include "policy/trace.h"

namespace atp::policy {

struct LinkRegion {
  double a1, b1, a2, b2;  // seconds per byte
  bool coupled;

  explicit LinkRegion(const LinkRates& rates) {
    const double in = rates.h2d, out = rates.d2h;
    const double both_in = rates.duplex_h2d > 0 ? std::min(rates.duplex_h2d, in) : in;
    const double both_out = rates.duplex_d2h > 0 ? std::min(rates.duplex_d2h, out) : out;
    coupled = both_in < in || both_out < out;
    a1 = 1 / in, b1 = (1 - both_in / in) / both_out;
    a2 = 1 / out, b2 = (1 - both_out / out) / both_in;
  }
};

}  // namespace atp::policy
