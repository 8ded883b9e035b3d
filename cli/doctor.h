// SPDX-License-Identifier: Apache-2.0
// atp doctor: whether this machine, and with a program this very program, will be served by the
// shim, and what to do where it will not. With a program it runs it once under the shim and reads
// the report that the shim writes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/driver_probe.h"
#include "frameworks/recognise.h"

namespace CLI {
class App;
}

namespace atp::cli {

inline constexpr int kExitNotServed = 1;

// The oldest driver with every required function of the shim's table (CUDA 12.0).
inline constexpr int kOldestDriver = 12000;

// `after_mark` as for atp run.
void AddDoctorCommand(CLI::App& app, const std::vector<std::string>& after_mark);

// --- the parts, for tests

nlohmann::ordered_json DescribeDriver(const std::string& library, const DriverProbe& probe);
nlohmann::ordered_json DescribeFrameworks(const std::vector<frameworks::Recognised>& all);
// One entry from the reports of all processes of a run.
nlohmann::ordered_json MergeReports(const std::vector<nlohmann::ordered_json>& reports);
// Each with its remedy; empty: it will be served.
std::vector<std::string> WhyNotServed(const nlohmann::ordered_json& findings);
// What a user should know although it is served.
std::vector<std::string> Advice(const nlohmann::ordered_json& findings);
std::string AsText(const nlohmann::ordered_json& findings);

}  // namespace atp::cli
