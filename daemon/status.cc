// SPDX-License-Identifier: Apache-2.0
#include "daemon/status.h"

#include <nlohmann/json.hpp>

namespace atp::daemon {

using Json = nlohmann::ordered_json;

namespace {

Json RunJson(const Store::Run& run) {
  Json json = {{"at", run.at},
               {"capacity_bytes", run.capacity_bytes},
               {"planned_iterations", run.periods},
               {"best_iteration_s", run.best_seconds},
               {"plain_iteration_s", run.plain_seconds},
               {"bound_safe_s", run.bound_seconds}};
  if (run.best_seconds > 0 && run.bound_seconds > 0) {
    json["achieved_over_bound"] = run.best_seconds / run.bound_seconds;
  }
  return json;
}

}  // namespace

std::string StatusJson(Store* store, uint32_t user, uint64_t refused) {
  const Store::Counters& c = store->counters();
  Json json = {{"version", ATP_VERSION},
               {"store",
                {{"workloads", store->workloads()},
                 {"bytes", store->bytes()},
                 {"set_aside", store->set_aside().string()}}},
               {"since_start",
                {{"asked", c.asked},
                 {"known", c.known},
                 {"told", c.told},
                 {"forgotten", c.forgotten},
                 {"refused", refused},
                 {"store_errors", c.errors}}},
               {"workloads", Json::array()}};
  for (const Store::Workload& workload : store->List(user)) {
    Json row = {{"id", workload.id},         {"command", workload.command},
                {"device", workload.device}, {"bytes", workload.bytes},
                {"told", workload.told},     {"runs", Json::array()}};
    for (const Store::Run& run : workload.runs) row["runs"].push_back(RunJson(run));
    json["workloads"].push_back(std::move(row));
  }
  // Commands may be any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace atp::daemon
