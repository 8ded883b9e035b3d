// SPDX-License-Identifier: Apache-2.0
#include "daemon/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

namespace atp::daemon {

void Log(LogLevel level, const char* format, ...) {
  // systemd says so when standard error is its journal.
  static const bool journal = getenv("JOURNAL_STREAM") != nullptr;
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (journal) {
    fprintf(stderr, "<%d>%s\n", level, line);
  } else {
    fprintf(stderr, "atpd: %s\n", line);
  }
}

}  // namespace atp::daemon
