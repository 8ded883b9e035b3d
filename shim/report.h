// SPDX-License-Identifier: Apache-2.0
// ATP_REPORT: one file at exit. A page (report_page.h) where the name ends in .html, else JSON with
// how often each hook was entered and what memory was placed. Called once, from the exit handler.
#pragma once

namespace atp::shim {

void WriteReport();

}  // namespace atp::shim
