// SPDX-License-Identifier: Apache-2.0
// ATP_REPORT: one JSON file at exit, with how often each hook was entered and what memory was
// placed. Called once, from the exit handler.
#pragma once

namespace atp::shim {

void WriteReport();

}  // namespace atp::shim
