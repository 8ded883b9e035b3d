// SPDX-License-Identifier: Apache-2.0
// The processes that move memory under the shim, as their records tell it (docs/report.md): what
// `atp status` and `atp top` show, with a daemon or without. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/run_records.h"

namespace atp::cli {

// One device of one process.
struct Job {
  pid_t pid = 0;
  std::string command;
  int device = 0;
  std::string device_name;
  uint64_t budget_bytes = 0, managed_bytes = 0, native_bytes = 0;
  uint64_t iterations = 0, plans = 0;
  bool planned = false, off = false;     // its last iteration ran by a plan; no hints any more
  uint64_t in_bytes = 0, out_bytes = 0;  // moved during the last iteration
  double iteration_s = 0, plain_iteration_s = 0, bound_safe_s = 0;  // 0 = not known
  std::string note;  // the latest thing that was switched off
};

class JobWatch {
 public:
  std::vector<Job> Look() { return Look(RunningJobs()); }
  std::vector<Job> Look(const std::vector<RunningJob>& running);

 private:
  struct Bound {
    uint64_t snapshots = 0;
    double safe = 0;
  };
  // By process and device: a bound is computed once for each measured iteration.
  std::map<std::pair<pid_t, int>, Bound> bounds_;
};

nlohmann::ordered_json JobJson(const Job& job);

// The daemon's answer to "status", null where none listens. Throws CommandError.
nlohmann::ordered_json DaemonStatus(const std::string& socket);

}  // namespace atp::cli
