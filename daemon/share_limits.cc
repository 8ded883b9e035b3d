// SPDX-License-Identifier: Apache-2.0
#include "daemon/share_limits.h"

#include <pwd.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace atp::daemon {
namespace {

[[noreturn]] void Fail(const std::string& text, const std::string& why) {
  throw std::invalid_argument(text + ": " + why +
                              "; wanted USER:budget=SIZE,weight=NUMBER,priority=NUMBER");
}

uint64_t Size(const std::string& text, const std::string& whole) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit = end;
  static const std::string kUnits = "KMGT";
  double scale = 1;
  if (!unit.empty()) {
    const size_t power = kUnits.find(unit[0]);
    const std::string rest = unit.substr(1);
    if (power == std::string::npos || (!rest.empty() && rest != "iB" && rest != "B")) {
      Fail(whole, text + " is no size");
    }
    for (size_t i = 0; i <= power; ++i) scale *= 1024;
  }
  const double bytes = number * scale;
  if (end == text.c_str() || !(bytes >= 1 && bytes < 1e15)) Fail(whole, text + " is no size");
  return static_cast<uint64_t>(bytes);
}

double Number(const std::string& text, double low, double high, const std::string& whole) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0 || !(number >= low && number <= high)) {
    Fail(whole, text + " is not between " + std::to_string(low) + " and " + std::to_string(high));
  }
  return number;
}

std::optional<uint32_t> UserOf(const std::string& name, const std::string& whole) {
  if (name == "*") return std::nullopt;
  char* end = nullptr;
  const unsigned long number = std::strtoul(name.c_str(), &end, 10);
  if (!name.empty() && *end == 0 && number < UINT32_MAX) return static_cast<uint32_t>(number);
  const passwd* found = getpwnam(name.c_str());
  if (found == nullptr) Fail(whole, "there is no user " + name);
  return found->pw_uid;
}

}  // namespace

UserLimits ParseUserLimits(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos || colon == 0) Fail(text, "no user");
  UserLimits parsed;
  parsed.user = UserOf(text.substr(0, colon), text);
  for (size_t at = colon + 1; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    const std::string word = text.substr(at, comma - at);
    const size_t equals = word.find('=');
    if (equals == std::string::npos) Fail(text, "\"" + word + "\" is no limit");
    const std::string key = word.substr(0, equals), value = word.substr(equals + 1);
    if (key == "budget") {
      parsed.limits.budget = Size(value, text);
    } else if (key == "weight") {
      parsed.limits.weight = Number(value, protocol::kLeastWeight, protocol::kMostWeight, text);
    } else if (key == "priority") {
      constexpr double kMost = protocol::kMostPriority;
      parsed.limits.priority = static_cast<int>(Number(value, -kMost, kMost, text));
    } else {
      Fail(text, "\"" + key + "\" is no limit");
    }
    at = comma + 1;
  }
  return parsed;
}

}  // namespace atp::daemon
