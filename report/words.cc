// SPDX-License-Identifier: Apache-2.0
#include "report/words.h"

#include <cxxabi.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string_view>

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
  if (seconds < 5e-9) return "0";
  const Unit unit = TimeUnit(seconds);
  return Short(seconds * unit.factor) + " " + unit.name;
}

std::string SayPercent(double part, double whole) {
  const double percent = whole > 0 ? 100 * part / whole : 0;
  return percent >= 0.05 && percent < 9.95 ? Format("%.1f %%", percent)
                                           : Format("%.0f %%", percent);
}

std::string SayTimes(double ratio) { return Format("%.2f", ratio); }

std::string SayKernel(const std::string& symbol) {
  int status = 0;
  char* readable = abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status);
  if (readable == nullptr) return symbol;
  std::string name = readable;
  std::free(readable);
  constexpr std::string_view kUnnamed = "(anonymous namespace)::";
  for (size_t at; (at = name.find(kUnnamed)) != std::string::npos;) name.erase(at, kUnnamed.size());
  // Of what stands outside of template arguments: the last word before the parameters.
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth > 0) continue;
    if (name[i] == ' ') begin = i + 1;
    if (name[i] == '(' && i > begin) return name.substr(begin, i - begin);
  }
  return name;
}

std::string SayCount(uint64_t count, const char* noun) {
  const std::string number = std::to_string(count) + " " + noun;
  if (count == 1) return number;
  return number + (number.ends_with("ch") ? "es" : "s");
}

}  // namespace atp::report
