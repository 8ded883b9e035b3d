// SPDX-License-Identifier: Apache-2.0
// What atpd is told to do, from four places: the command line, then the environment (ATPD_KEY),
// then the user's file, then the machine's. docs/daemon.md names the keys. No globals; any thread.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "daemon/share_limits.h"
#include "daemon/store.h"
#include "daemon/tuning.h"

namespace atp::daemon {

struct Settings {
  std::string socket, store, group, metrics, machine;
  StoreLimits limits;
  TuningOptions tuning;
  std::vector<UserLimits> job_limits;
  bool check_config = false, dump_stats = false;
};

using Lookup = std::function<const char*(const char*)>;  // getenv in life

// Whose files are read.
struct WhoAsks {
  WhoAsks();  // this process, on this machine
  bool root;
  std::string machine_file;
};

// -1: `settings` are good. Else the exit code, after what there is to say has been said (help to
// stdout, what is wrong to stderr). `shown`, if not null: the settings as --check-config prints
// them.
int ReadSettings(const std::vector<std::string>& arguments, const Lookup& lookup,
                 Settings* settings, std::string* shown, const WhoAsks& who = {});

}  // namespace atp::daemon
