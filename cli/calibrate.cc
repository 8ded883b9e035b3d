// SPDX-License-Identifier: Apache-2.0
#include "cli/calibrate.h"

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

#include "cli/calibrate_measure.h"
#include "cli/error.h"
#include "cli/run.h"
#include "cli/table.h"
#include "policy/machine_json.h"

namespace atp::cli {
namespace {

struct CalibrateOptions {
  std::string sim, output;
  int device = 0;
  bool json = false;
  CalibrationLimits limits;
};

std::string DriverLibrary(const CalibrateOptions& options) {
  if (options.sim.empty()) return "libcuda.so.1";
  const Installation found = FindInstallation(std::filesystem::read_symlink("/proc/self/exe"));
  if (found.sim_folder.empty()) {
    throw CommandError(1, "--sim " + options.sim + ": no simulated driver beside this command");
  }
  setenv("ATP_SIM_GPU", options.sim.c_str(), 1);
  return found.sim_folder + "/libcuda.so.1";
}

std::string Text(const policy::MeasuredMachine& machine) {
  Table table({machine.device, "measured"});
  const auto rate = [&](const char* name, double bytes_per_second) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f GB/s", bytes_per_second / 1e9);
    table.Add({name, text});
  };
  const auto time = [&](const char* name, double us) {
    table.Add({name, us > 0 ? FormatSeconds(us / 1e6) : "not measured"});
  };
  rate("copies to the device", machine.link.h2d);
  rate("copies to the host", machine.link.d2h);
  rate("to the device, both ways busy", machine.link.duplex_h2d);
  rate("to the host, both ways busy", machine.link.duplex_d2h);
  time("prefetch, a call", machine.prefetch_call_us);
  time("prefetch, a block that moves", machine.prefetch_block_us);
  time("prefetch, a block that is there", machine.prefetch_touch_us);
  time("a block mapped for the host", machine.host_map_us);
  time("a block unmapped from the host", machine.host_unmap_us);
  time("page faults, a batch", machine.fault_batch_us);
  time("page faults, a page", machine.fault_us);
  time("page faults, a block", machine.fault_block_us);
  return table.Text();
}

void Write(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::trunc);
  out << text << std::flush;
  if (!out) throw CommandError(1, file + ": " + std::strerror(errno));
}

void Run(const CalibrateOptions& options) {
  // The driver itself is measured, not what a preloaded shim makes of it.
  setenv("ATP_POLICY", "off", 1);
  CalibrationDriver driver(DriverLibrary(options), options.device);
  const policy::MeasuredMachine machine = Measure(&driver, options.limits);
  if (!driver.moves_memory()) {
    std::cerr << "atp calibrate: this device does not move managed memory by pages: only the link "
                 "was measured\n";
  }
  if (!options.output.empty()) Write(options.output, policy::WriteMachine(machine));
  if (options.json) {
    std::cout << policy::WriteMachine(machine);
  } else {
    std::cout << Text(machine);
  }
}

}  // namespace

void AddCalibrateCommand(CLI::App& app) {
  auto options = std::make_shared<CalibrateOptions>();
  CLI::App* command = app.add_subcommand(
      "calibrate", "Measures this machine: its link, and what prefetches and page faults cost.");
  command->add_option("-o,--output", options->output, "Machine file to write");
  command->add_option("--device", options->device, "Number of the device")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command
      ->add_option("--repeats", options->limits.repeats, "Of each measurement; the middle counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--sim", options->sim, "Measure the simulated machine with this GPU instead");
  command->add_flag("--json", options->json, "Print what the machine file holds");
  command->footer(
      "Uses at most an eighth of the free device memory, and nothing else may use the device "
      "meanwhile.\nExit code: 0 measured; 1 no driver, too little free memory, or a call failed; 2 "
      "usage.");
  command->callback([options] { Run(*options); });
}

}  // namespace atp::cli
