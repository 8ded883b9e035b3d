// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/stats.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "sim/driver/driver.h"
#include "sim/driver/host_touches.h"

namespace atp::sim {
namespace {

constexpr int kExitAttempts = 3000;  // a millisecond each; then the statistics are given up

void AtExit() {
  Driver& driver = Driver::Get();
  if (driver.forked()) return;  // the parent's file is the parent's
  // A thread that was ended inside a call may hold the lock for ever; then the statistics are given
  // up.
  std::unique_lock<std::mutex> lock(driver.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  driver.FlushDeviceOutput();
  driver.trace().Flush();
  driver.machine().FlushTimeline();
  WriteStats(driver);
}

// Runs after the handlers that the program has registered with atexit.
__attribute__((destructor)) void AtUnload() {
  if (Driver::Get().initialised()) AtExit();
}

}  // namespace

std::string StatsText(Driver& driver) {
  Lane lane = 0;
  if (driver.LastLane(&lane)) CollectAllHostTouches(driver, lane);
  nlohmann::json stats = nlohmann::json::parse(driver.machine().StatsJson());
  nlohmann::json calls = nlohmann::json::object(), unsupported = nlohmann::json::object();
  for (const Entry* entry = Entry::First(); entry; entry = entry->next()) {
    if (entry->calls() == 0) continue;
    (entry->supported() ? calls : unsupported)[entry->name()] = entry->calls();
  }
  stats["calls"] = calls;
  stats["unsupported_calls"] = unsupported;
  uint64_t modelled = 0;
  for (const auto& [kernel, count] : driver.modelled_launches) modelled += count;
  stats["modelled_launches"] = modelled;
  stats["modelled_kernels"] = driver.modelled_launches;
  stats["uninitialised_reads"] = driver.uninitialised_reads;
  stats["recalled_launches"] = driver.recalled_launches;
  stats["driver_version"] = driver.settings().driver_version;
  stats["profile"] = driver.settings().machine.profile;
  stats["execution_failures"] = driver.execution_failures;
  return stats.dump(2) + "\n";
}

void WriteStats(Driver& driver) {
  const std::string& path = driver.settings().stats_file;
  if (path.empty()) return;
  const std::string text = StatsText(driver);
  FILE* file = std::fopen(path.c_str(), "w");
  if (!file) {
    std::fprintf(stderr, "libcuda (simulated): ATP_SIM_STATS=%s: cannot be written\n",
                 path.c_str());
    return;
  }
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
}

void WriteStatsAtExit() {
  std::atexit(AtExit);
  std::at_quick_exit(AtExit);
}

}  // namespace atp::sim
