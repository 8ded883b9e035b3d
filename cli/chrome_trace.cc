// SPDX-License-Identifier: Apache-2.0
#include "cli/chrome_trace.h"

#include <nlohmann/json.hpp>

namespace atp::cli {
namespace {

class Events {
 public:
  void Slice(const std::string& name, int device, int stream, double seconds, double bytes) {
    events_.push_back({{"ph", "X"},
                       {"name", name},
                       {"cat", "launch"},
                       {"pid", device},
                       {"tid", stream},
                       {"ts", now_ * 1e6},
                       {"dur", seconds * 1e6},
                       {"args", {{"touched_bytes", bytes}}}});
    events_.push_back({{"ph", "C"},
                       {"name", "touched"},
                       {"pid", device},
                       {"ts", now_ * 1e6},
                       {"args", {{"bytes", bytes}}}});
    now_ += seconds;
  }
  void Mark(const std::string& text) {
    events_.push_back(
        {{"ph", "i"}, {"name", text}, {"pid", 0}, {"tid", 0}, {"ts", now_ * 1e6}, {"s", "g"}});
  }
  std::string Take(const std::string& name, const std::string& source) {
    nlohmann::ordered_json all;
    all["displayTimeUnit"] = "ms";
    all["otherData"] = {{"name", name}, {"source", source}};
    all["traceEvents"] = std::move(events_);
    return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  }

 private:
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  double now_ = 0;
};

}  // namespace

std::string ChromeTrace(const policy::Trace& trace) {
  Events events;
  for (const policy::Launch& l : trace.launches) {
    double bytes = double(l.workspace);
    for (const auto* list : {&l.reads, &l.writes}) {
      for (uint32_t t : *list) bytes += double(trace.tensors[t].bytes);
    }
    events.Slice(l.name, 0, l.stream, l.seconds, bytes);
  }
  return events.Take(trace.name, trace.source);
}

std::string ChromeTrace(const policy::RawTrace& trace) {
  Events events;
  size_t mark = 0;
  for (size_t k = 0; k < trace.launches.size(); ++k) {
    for (; mark < trace.marks.size() && trace.marks[mark].at <= k; ++mark) {
      events.Mark(trace.marks[mark].text);
    }
    const policy::RawTrace::Launch& l = trace.launches[k];
    double bytes = 0;
    for (const auto& touch : l.touches) bytes += double(touch.bytes);
    events.Slice(l.name, l.device, l.stream, l.seconds, bytes);
  }
  for (; mark < trace.marks.size(); ++mark) events.Mark(trace.marks[mark].text);
  return events.Take(trace.name, trace.source);
}

}  // namespace atp::cli
