// SPDX-License-Identifier: Apache-2.0
#include "cli/size.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace atp::cli {
namespace {

constexpr std::string_view kUnits = "KMGT";

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The number at the start of `text`, which is then cut off; nothing when there is none, or when it
// has a sign or an exponent. By hand: no locale may have a say, and g++ 10 has no from_chars for
// it.
std::optional<double> TakeNumber(std::string_view* text) {
  double value = 0, unit = 1;
  size_t at = 0;
  bool digits = false;
  for (; at < text->size() && IsDigit((*text)[at]); ++at, digits = true) {
    value = value * 10 + ((*text)[at] - '0');
  }
  if (at < text->size() && (*text)[at] == '.') {
    for (++at; at < text->size() && IsDigit((*text)[at]); ++at, digits = true) {
      unit /= 10;
      value += unit * ((*text)[at] - '0');
    }
  }
  if (!digits || !std::isfinite(value)) return std::nullopt;
  text->remove_prefix(at);
  return value;
}

}  // namespace

std::optional<uint64_t> ParseBytes(std::string_view text) {
  const auto number = TakeNumber(&text);
  if (!number) return std::nullopt;
  double bytes = *number;
  if (!text.empty()) {
    const auto unit = kUnits.find(text.front());
    if (unit == std::string_view::npos) return std::nullopt;
    bytes = std::ldexp(bytes, 10 * (static_cast<int>(unit) + 1));
    text.remove_prefix(1);
    if (!text.empty() && text != "iB") return std::nullopt;
  }
  if (bytes < 1 || bytes >= std::ldexp(1.0, 64)) return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

std::optional<Share> ParseShare(std::string_view text) {
  if (text.empty() || text.back() != '%') {
    const auto bytes = ParseBytes(text);
    return bytes ? std::optional(Share{*bytes, 0}) : std::nullopt;
  }
  text.remove_suffix(1);
  const auto percent = TakeNumber(&text);
  if (!percent || !text.empty() || *percent <= 0 || *percent > 100) return std::nullopt;
  return Share{0, *percent};
}

std::optional<std::map<int, Share>> ParseBudget(std::string_view text) {
  std::map<int, Share> budget;
  if (text.find('=') == std::string_view::npos) {
    const auto share = ParseShare(text);
    if (!share) return std::nullopt;
    budget[-1] = *share;
    return budget;
  }
  for (bool last = false; !last;) {
    const auto comma = text.find(',');
    last = comma == std::string_view::npos;
    const auto part = text.substr(0, comma);
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    int device = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + equals, device);
    const auto share = ParseShare(part.substr(equals + 1));
    const bool is_device = error == std::errc() && end == part.data() + equals && device >= 0;
    if (!is_device || !share || !budget.emplace(device, *share).second) return std::nullopt;
    if (!last) text.remove_prefix(comma + 1);
  }
  return budget;
}

std::string FormatBytes(uint64_t bytes) {
  int unit = -1;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < static_cast<int>(kUnits.size())) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  if (unit < 0) {
    std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  } else {
    std::snprintf(text, sizeof text, "%.4g %ciB", value, kUnits[unit]);
  }
  return text;
}

}  // namespace atp::cli
