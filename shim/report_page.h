// SPDX-License-Identifier: Apache-2.0
// ATP_REPORT=NAME.html: the page of the run (report/page.h), made at exit from what the record file
// holds. Nothing is written by a process that has not used a device.
#pragma once

namespace atp::shim {

bool IsPageName(const char* file);
void WritePage();

}  // namespace atp::shim
