// SPDX-License-Identifier: Apache-2.0
// Scalar forms of the approximate functions, for types that are computed in float.
#pragma once

namespace atp::sim::exec::ATP_VARIANT {

float ApproxExp2(float v);
float ApproxTanh(float v);

}  // namespace atp::sim::exec::ATP_VARIANT
