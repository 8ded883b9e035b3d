// SPDX-License-Identifier: Apache-2.0
// Runs a program on a simulated card under the real library, and reads what it printed and what the
// machine counted.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

#include "tests/preload/child.h"

namespace atp::preload {

struct Outcome {
  Finished finished;
  std::vector<double> iteration_ms;
  std::string results;  // everything printed, but for the times
  nlohmann::json stats;
};

inline Outcome Launch(const std::vector<std::string>& command, const std::string& memory,
                      Environment environment) {
  static int runs = 0;
  const std::string stats = testing::TempDir() + "closed_loop." + std::to_string(getpid()) + "." +
                            std::to_string(++runs) + ".json";
  environment["LD_LIBRARY_PATH"] = ATP_SIM_FOLDER;
  environment.try_emplace("ATP_SIM_GPU", "tiny");
  environment["ATP_SIM_MEMORY"] = memory;
  environment["ATP_SIM_STATS"] = stats;
  const auto policy = environment.find("ATP_POLICY");
  if (policy == environment.end() || policy->second != "off") {
    environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
  }
  Outcome outcome;
  outcome.finished = RunChild(command, environment);
  static const std::regex time("ms ([0-9.]+)");
  const std::string& out = outcome.finished.out;
  for (std::sregex_iterator it(out.begin(), out.end(), time), end; it != end; ++it) {
    outcome.iteration_ms.push_back(std::stod((*it)[1]));
  }
  outcome.results = std::regex_replace(out, time, "");
  std::ifstream(stats) >> outcome.stats;
  unlink(stats.c_str());
  return outcome;
}

}  // namespace atp::preload
