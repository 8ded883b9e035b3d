// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/faults.h"

#include <cstdlib>

namespace atp::sim {
namespace {

// A duration such as 500us, 2ms or 1s; negative when malformed.
Time ParseDuration(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  const std::string unit = end;
  const Time scale = unit == "ns"   ? kNs
                     : unit == "us" ? kUs
                     : unit == "ms" ? kMs
                     : unit == "s"  ? kSecond
                                    : 0;
  if (end == text.c_str() || scale == 0 || number < 0) return -1;
  return static_cast<Time>(number * static_cast<double>(scale));
}

}  // namespace

std::string Faults::Parse(const std::string& rules) {
  size_t start = 0;
  while (start < rules.size()) {
    size_t comma = rules.find(',', start);
    if (comma == std::string::npos) comma = rules.size();
    const std::string text = rules.substr(start, comma - start);
    start = comma + 1;
    const std::string form =
        text + ": a fault is written function:nth=error, for example cuMemAlloc_v2:3=2";
    const size_t colon = text.find(':'), equals = text.find('=');
    if (colon == std::string::npos || equals == std::string::npos || equals < colon) return form;
    Rule rule;
    rule.function = text.substr(0, colon);
    std::string nth = text.substr(colon + 1, equals - colon - 1);
    const std::string effect = text.substr(equals + 1);
    if (nth != "*") {
      const bool open = !nth.empty() && nth.back() == '+';
      char* end = nullptr;
      rule.first = std::strtoull(nth.c_str(), &end, 10);
      if (rule.first == 0 || (*end != 0 && !(open && end[1] == 0))) return form;
      if (!open) rule.last = rule.first;
    }
    if (effect == "lost") {
      rule.loses_device = true;
    } else if (effect.rfind("delay:", 0) == 0) {
      rule.outcome.delay = ParseDuration(effect.substr(6));
      if (rule.outcome.delay < 0) return form;
    } else if (effect.rfind("slow:", 0) == 0) {
      rule.outcome.slow = ParseDuration(effect.substr(5));
      if (rule.outcome.slow < 0) return form;
    } else {
      char* end = nullptr;
      const long error = std::strtol(effect.c_str(), &end, 10);
      if (end == effect.c_str() || *end != 0 || error <= 0) return form;
      rule.outcome.result = static_cast<CUresult>(error);
    }
    rules_.push_back(rule);
  }
  return "";
}

Faults::Outcome Faults::Meet(const char* function, uint64_t call) {
  Outcome met;
  ++calls_;
  for (const Rule& rule : rules_) {
    const bool any = rule.function == "*";
    const uint64_t count = any ? calls_ : call;
    if ((!any && rule.function != function) || count < rule.first || count > rule.last) continue;
    if (rule.loses_device) device_lost_ = true;
    if (rule.outcome.result != CUDA_SUCCESS) met.result = rule.outcome.result;
    met.delay += rule.outcome.delay;
    met.slow += rule.outcome.slow;
  }
  if (device_lost_) met.result = CUDA_ERROR_DEVICE_UNAVAILABLE;
  return met;
}

}  // namespace atp::sim
