// SPDX-License-Identifier: Apache-2.0
// The page of a run: one file of HTML that needs nothing else, no script and no network, readable
// in light and dark. Pure; any thread.
#pragma once

#include <string>

#include "protocol/run_record_reader.h"

namespace atp::report {

std::string MakePage(const protocol::RunRecord& run);

}  // namespace atp::report
