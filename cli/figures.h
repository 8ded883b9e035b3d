// SPDX-License-Identifier: Apache-2.0
// The figures of the commands about traces, as SVG (report/plot.h). Pure; any thread.
#pragma once

#include <string>

#include "policy/model/throughput.h"
#include "policy/replay/result.h"
#include "policy/trace.h"

namespace atp::cli {

// Residency and link use over one period, as replayed with ReplayOptions::timeline.
std::string TimelineSvg(const policy::Trace& trace, const std::string& policy_name,
                        policy::Bytes memory, const policy::ReplayResult& result);

// Speed against device memory.
std::string ThroughputSvg(const policy::Trace& trace, const policy::ThroughputCurve& curve);

}  // namespace atp::cli
