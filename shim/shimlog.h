// SPDX-License-Identifier: Apache-2.0
// Log lines from inside the program: one write(2) each from a buffer on the stack; no heap, no
// lock, no stdio stream, never stdout. Any thread. The level is checked first, so a line below it
// costs one load. Lines go to stderr, or to ATP_LOG_FILE (created 0600, no symlink followed).
#pragma once

namespace atp::shim {

enum class LogLevel : int { kOff, kError, kWarn, kInfo, kDebug };

extern LogLevel g_log_level;  // written once, by ReadSettings
void OpenLogFile(const char* path);

// Writes "atpshim[pid] level: ..." and a newline. Longer lines are cut at 1 KiB.
void LogLine(LogLevel level, const char* format, ...) __attribute__((format(printf, 2, 3)));

#define ATP_LOG_AT(level, ...)                                                   \
  do {                                                                           \
    if (static_cast<int>(::atp::shim::g_log_level) >= static_cast<int>(level)) { \
      ::atp::shim::LogLine(level, __VA_ARGS__);                                  \
    }                                                                            \
  } while (0)
#define ATP_LOG_ERROR(...) ATP_LOG_AT(::atp::shim::LogLevel::kError, __VA_ARGS__)
#define ATP_LOG_WARN(...) ATP_LOG_AT(::atp::shim::LogLevel::kWarn, __VA_ARGS__)
#define ATP_LOG_INFO(...) ATP_LOG_AT(::atp::shim::LogLevel::kInfo, __VA_ARGS__)
#define ATP_LOG_DEBUG(...) ATP_LOG_AT(::atp::shim::LogLevel::kDebug, __VA_ARGS__)

// "12.3 GiB" and the like, for log lines.
struct HumanBytes {
  explicit HumanBytes(unsigned long long bytes);
  const char* text() const { return text_; }

 private:
  char text_[24];
};

// Opens a file that the user named for us: expanded (%p %h %r), 0600, no symlink followed. -1 and a
// log line when that fails.
int OpenNamedFile(const char* name, bool append);

}  // namespace atp::shim
