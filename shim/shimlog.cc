// SPDX-License-Identifier: Apache-2.0
#include "shim/shimlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/settings.h"

namespace atp::shim {

LogLevel g_log_level = LogLevel::kWarn;

namespace {

int log_fd = STDERR_FILENO;
constexpr const char* kLevelNames[] = {"off", "error", "warn", "info", "debug"};

void WriteAll(int fd, const char* data, size_t size) {
  const int saved = errno;
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    data += written;
    size -= static_cast<size_t>(written);
  }
  errno = saved;  // the program must not see that we logged
}

}  // namespace

// vsnprintf allocates only for wide characters and very long floating-point output; our formats use
// neither.
void LogLine(LogLevel level, const char* format, ...) {
  char line[1024];
  int used = snprintf(line, sizeof line, "atpshim[%d] %s: ", static_cast<int>(getpid()),
                      kLevelNames[static_cast<int>(level)]);
  va_list arguments;
  va_start(arguments, format);
  const int more =
      vsnprintf(line + used, sizeof line - static_cast<size_t>(used), format, arguments);
  va_end(arguments);
  if (more > 0) used += more;
  if (used > static_cast<int>(sizeof line) - 1) used = sizeof line - 1;
  line[used] = '\n';
  WriteAll(log_fd, line, static_cast<size_t>(used) + 1);
}

HumanBytes::HumanBytes(unsigned long long bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  unsigned unit = 0;
  while (unit < 4 && bytes >> (10 * unit) >= 1024) ++unit;
  if (unit == 0) {
    snprintf(text_, sizeof text_, "%llu B", bytes);
    return;
  }
  const unsigned long long tenth = (bytes >> (10 * (unit - 1)) & 1023) * 10 / 1024;
  snprintf(text_, sizeof text_, "%llu.%llu %s", bytes >> (10 * unit), tenth, kUnits[unit]);
}

int OpenNamedFile(const char* name, bool append) {
  char path[1024];
  if (!ExpandFileName(name, path, sizeof path)) {
    ATP_LOG_WARN("file name is too long: %s", name);
    return -1;
  }
  const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (append ? O_APPEND : O_TRUNC);
  const int fd = open(path, flags, 0600);
  if (fd < 0) ATP_LOG_WARN("cannot open %s: %s", path, strerror(errno));
  return fd;
}

void OpenLogFile(const char* path) {
  const int fd = OpenNamedFile(path, /*append=*/true);
  if (fd >= 0) log_fd = fd;
}

}  // namespace atp::shim
