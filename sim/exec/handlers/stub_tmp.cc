// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/handlers/pick.h"
namespace atp::sim::exec::ATP_VARIANT {
Handler PickHalf(const ptx::Op&) { return nullptr; }
Handler PickMatrix(const ptx::Op&, const Form&) { return nullptr; }
Handler PickAsync(const ptx::Op&, const Form&) { return nullptr; }
}
