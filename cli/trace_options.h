// SPDX-License-Identifier: Apache-2.0
// What the commands about traces (bound, plan, replay, model) have in common. Throws CommandError.
// One thread.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "policy/replay/options.h"
#include "policy/trace.h"

namespace atp::cli {

struct TraceOptions {
  std::vector<std::string> traces;
  std::vector<std::string> memory;  // as given; empty = what the trace says
  std::string machine;              // file of `atp calibrate`; empty = what the trace says
  bool json = false;
};

// TRACE..., --memory, --machine and --json.
void AddTraceOptions(CLI::App* command, TraceOptions* options, bool several_sizes = false);

// One steady period, on the machine of --machine where one is given.
policy::Trace ReadPeriod(const TraceOptions& options, const std::string& path);
// What the replay model knows of that machine.
policy::DriverCosts CostsFor(const TraceOptions& options);

// Bytes of device memory for each size of --memory (a share is of the trace's footprint), or the
// one that the trace names.
std::vector<policy::Bytes> MemoriesFor(const TraceOptions& options, const policy::Trace& trace);
inline policy::Bytes MemoryFor(const TraceOptions& options, const policy::Trace& trace) {
  return MemoriesFor(options, trace).front();
}

// One object for one trace, a list for several.
template <typename Json>
Json OneOrList(Json list) {
  return list.size() == 1 ? list[0] : list;
}

}  // namespace atp::cli
