// SPDX-License-Identifier: Apache-2.0
// The charts of the page, from the analysis of a device. Pure; any thread.
#pragma once

#include "protocol/run_record_reader.h"
#include "report/analysis.h"
#include "report/plot.h"

namespace atp::report {

Panel IterationsPanel(const Analysis& analysis);
Panel ResidencyPanel(const Analysis& analysis, const protocol::DeviceRun& run);
Panel LinkPanel(const Analysis& analysis, const protocol::MeasuredIteration& measured);
Panel WaitsPanel(const Analysis& analysis);
Panel MovedPanel(const Analysis& analysis);

// Colours of causes and directions, as the style sheet of the page names them.
extern const char* const kCauseColors[kCauses];

}  // namespace atp::report
