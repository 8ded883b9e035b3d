// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_options.h"

#include "cli/error.h"
#include "cli/machine_file.h"
#include "cli/size.h"
#include "cli/trace_input.h"
#include "policy/replay/uses.h"

namespace atp::cli {

void AddTraceOptions(CLI::App* command, TraceOptions* options, bool several_sizes) {
  command->add_option("TRACE", options->traces, "trace files, JSON lines or binary")->required();
  CLI::Option* memory = command->add_option(
      "--memory", options->memory,
      "device memory: a size (16GiB), or a share of the footprint (60%); default: what the trace "
      "says");
  memory->check([](const std::string& text) {
    if (ParseShare(text)) return std::string();
    return "\"" + text + "\": " + std::string(kSizeForms) + ", or a share such as 60%";
  });
  memory->allow_extra_args(false);  // a trace may follow
  if (several_sizes) {
    memory->delimiter(',')->description("several, with commas between: " +
                                        memory->get_description());
  } else {
    memory->expected(1);
  }
  command->add_option("--machine", options->machine,
                      "file of `atp calibrate`: its link and costs instead of the trace's");
  command->add_flag("--json", options->json, "figures as JSON on stdout");
}

policy::Trace ReadPeriod(const TraceOptions& options, const std::string& path) {
  policy::Trace trace = ReadPeriod(path);
  if (!options.machine.empty()) policy::UseMachine(ReadMachineFile(options.machine), &trace);
  return trace;
}

policy::DriverCosts CostsFor(const TraceOptions& options) {
  policy::DriverCosts costs;
  if (!options.machine.empty()) policy::UseMachine(ReadMachineFile(options.machine), &costs);
  return costs;
}

std::vector<policy::Bytes> MemoriesFor(const TraceOptions& options, const policy::Trace& trace) {
  if (options.memory.empty()) {
    if (trace.device_bytes == 0) {
      throw CommandError(kExitUnreadable,
                         trace.name + ": names no device_bytes; give --memory, such as 16GiB");
    }
    return {trace.device_bytes};
  }
  std::vector<policy::Bytes> sizes;
  for (const std::string& text : options.memory) {
    const Share share = *ParseShare(text);
    const double part = double(policy::PeakLiveBytes(trace)) * share.percent / 100;
    sizes.push_back(share.bytes > 0 ? share.bytes : static_cast<policy::Bytes>(part));
  }
  return sizes;
}

}  // namespace atp::cli
