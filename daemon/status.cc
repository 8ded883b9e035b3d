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

Json SharesJson(const std::vector<ShareBook::Row>& rows) {
  Json shares = Json::array();
  for (const ShareBook::Row& row : rows) {
    shares.push_back({{"job", row.job},
                      {"pid", row.process},
                      {"command", row.command},
                      {"card", row.card},
                      {"budget_bytes", row.budget},
                      {"footprint_bytes", row.footprint},
                      {"least_bytes", row.least},
                      {"most_bytes", row.most},
                      {"weight", row.weight},
                      {"priority", row.priority},
                      {"waits", row.budget == 0}});
  }
  return shares;
}

Json DecisionJson(const Store::Decision& decision) {
  return {{"at", decision.at},
          {"what", decision.what},
          {"before_s", decision.before_seconds},
          {"after_s", decision.after_seconds},
          {"reason", decision.reason}};
}

}  // namespace

std::string StatusJson(Store* store, uint32_t user, uint64_t refused, const Tuning* tuning,
                       ShareBook* book) {
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
               {"tuning", nullptr},
               {"shares", Json::array()},
               {"workloads", Json::array()}};
  if (book != nullptr) json["shares"] = SharesJson(book->List(user));
  if (tuning != nullptr) {
    json["tuning"] = {{"on", tuning->on()},
                      {"searching", tuning->searching()},
                      {"searches", tuning->counters().searches},
                      {"offered", tuning->counters().offered}};
  }
  for (const Store::Workload& workload : store->List(user)) {
    Json row = {{"id", workload.id},         {"command", workload.command},
                {"device", workload.device}, {"bytes", workload.bytes},
                {"told", workload.told},     {"runs", Json::array()},
                {"decisions", Json::array()}};
    for (const Store::Run& run : workload.runs) row["runs"].push_back(RunJson(run));
    for (const auto& decision : workload.decisions) {
      row["decisions"].push_back(DecisionJson(decision));
    }
    json["workloads"].push_back(std::move(row));
  }
  // Commands may be any bytes.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string MetricsText(Store* store, const ServerFigures& server) {
  std::string text;
  const auto add = [&](const char* name, const char* type, const char* help, uint64_t value) {
    text += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n" +
            name + " " + std::to_string(value) + "\n";
  };
  const Store::Counters& c = store->counters();
  add("atpd_store_workloads", "gauge", "Workloads remembered, of all users.", store->workloads());
  add("atpd_store_bytes", "gauge", "Bytes of what is remembered.", store->bytes());
  add("atpd_asked_total", "counter", "Questions of programs.", c.asked);
  add("atpd_known_total", "counter", "Questions to which something was known.", c.known);
  add("atpd_told_total", "counter", "Times that a program has told something.", c.told);
  add("atpd_forgotten_total", "counter", "Workloads that made room or were forgotten.",
      c.forgotten);
  add("atpd_store_errors_total", "counter", "Reads and writes of the store that failed.", c.errors);
  add("atpd_refused_total", "counter", "Messages that could not be taken.", server.refused);
  add("atpd_connections", "gauge", "Connections that have not said anything yet.",
      server.connections);
  add("atpd_accepted_total", "counter", "Connections.", server.accepted);
  add("atpd_served_total", "counter", "Messages read.", server.served);
  add("atpd_dropped_total", "counter", "Silent connections that were closed.", server.dropped);
  add("atpd_unanswered_total", "counter", "Answers that their reader did not take.",
      server.unanswered);
  add("atpd_tune_searches_total", "counter", "Searches for better choices.", server.searches);
  add("atpd_tune_offered_total", "counter", "Choices that replays found better.", server.offered);
  return text;
}

}  // namespace atp::daemon
