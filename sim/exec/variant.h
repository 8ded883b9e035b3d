// SPDX-License-Identifier: Apache-2.0
// Which build of the handlers runs: the widest that the processor has, or one chosen by tests and
// benchmarks.
#pragma once

#include <span>
#include <string_view>

#include "sim/exec/handlers/pick.h"

namespace atp::sim::exec {

std::span<const Variant* const> UsableVariants();  // narrowest first
const Variant& CurrentVariant();
// Takes effect for modules loaded afterwards. False when there is no such variant, or the processor
// cannot run it.
bool SelectVariant(std::string_view name);

}  // namespace atp::sim::exec
