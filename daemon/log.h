// SPDX-License-Identifier: Apache-2.0
// Lines on standard error, as the journal of systemd wants them: a priority in front where nobody
// reads them directly. One thread.
#pragma once

namespace atp::daemon {

enum LogLevel { kLogError = 3, kLogWarning = 4, kLogInfo = 6 };

void Log(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

}  // namespace atp::daemon
