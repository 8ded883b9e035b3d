// SPDX-License-Identifier: Apache-2.0
#include "report/words.h"

#include <cstdarg>
#include <cstdio>

namespace atp::report {
namespace {

__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...) {
  char text[64];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

// Three digits that count, and no exponent.
std::string Short(double value) {
  return value >= 99.95   ? Format("%.0f", value)
         : value >= 9.995 ? Format("%.1f", value)
                          : Format("%.2f", value);
}

}  // namespace

Unit TimeUnit(double seconds) {
  if (seconds >= 1) return {1, "s"};
  if (seconds >= 1e-3) return {1e3, "ms"};
  return {1e6, "us"};
}

Unit BytesUnit(double bytes) {
  if (bytes >= 1024.0 * 1024 * 1024) return {1 / (1024.0 * 1024 * 1024), "GiB"};
  return {1 / (1024.0 * 1024), "MiB"};
}

std::string SayBytes(double bytes) {
  if (bytes <= 0) return "0";
  const Unit unit = BytesUnit(bytes);
  return Short(bytes * unit.factor) + " " + unit.name;
}

std::string SaySeconds(double seconds) {
  if (seconds <= 0) return "0";
  const Unit unit = TimeUnit(seconds);
  return Short(seconds * unit.factor) + " " + unit.name;
}

std::string SayPercent(double part, double whole) {
  const double percent = whole > 0 ? 100 * part / whole : 0;
  return percent > 0 && percent < 9.95 ? Format("%.1f %%", percent) : Format("%.0f %%", percent);
}

std::string SayTimes(double ratio) { return Format("%.2f", ratio); }

std::string SayCount(uint64_t count, const char* noun) {
  const std::string number = std::to_string(count) + " " + noun;
  if (count == 1) return number;
  return number + (number.ends_with("ch") ? "es" : "s");
}

}  // namespace atp::report
