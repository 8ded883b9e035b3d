// SPDX-License-Identifier: Apache-2.0
// `atp bound`: the least time that physics allows a trace with this much memory. One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "policy/recompute.h"
#include "policy/trace.h"

namespace atp::cli {

void AddBoundCommand(CLI::App& app);

struct Bounds {
  double compute_s = 0, any_s = 0, closed_s = 0, safe_s = 0;
  std::optional<double> lp_s, recompute_s;
};
// Throws CommandError when no memory of this size can run the trace, or the linear program fails.
Bounds FindBounds(const policy::Trace& trace, policy::Bytes memory, bool lp);
// What no plan that recomputes can beat, into `bounds`.
void FindRecomputeBound(const policy::Trace& trace, policy::Bytes memory,
                        const std::string& recompute, Bounds* bounds);
// --recompute WHICH: "", "all" or "elementwise".
void AddRecomputeOption(CLI::App* command, std::string* which, const std::string& what);
policy::RecomputeOptions RecomputeOptionsOf(const policy::Trace& trace, const std::string& which);
// The keys of the JSON form from "trace" to "bound_lp_s", and "bound_recompute_s" where it is
// known.
nlohmann::ordered_json BoundsJson(const policy::Trace& trace, policy::Bytes memory,
                                  const Bounds& bounds);

}  // namespace atp::cli
