// SPDX-License-Identifier: Apache-2.0
// The part of the store that tuning needs: what to search next, what is on offer, what was decided.
#include <ctime>

#include "daemon/log.h"
#include "daemon/statement.h"
#include "daemon/store.h"

namespace atp::daemon {

// A workload is searched when it is new, and again when it has told four times as much: until then
// the same replays would say the same.
std::optional<Store::ToTune> Store::NextToTune() {
  Statement row(database_.get(),
                "SELECT id, user, told, learned FROM workload"
                " WHERE searched = 0 OR told >= 4 * searched ORDER BY used DESC LIMIT 1");
  if (!row.Row()) return std::nullopt;
  return ToTune{static_cast<uint64_t>(row.Integer(0)), static_cast<uint32_t>(row.Integer(1)),
                static_cast<uint64_t>(row.Integer(2)),
                std::vector<uint8_t>(row.Blob(3).begin(), row.Blob(3).end())};
}

void Store::Searched(const ToTune& workload) {
  Statement row(database_.get(), "UPDATE workload SET searched = max(1, ?2) WHERE id = ?1");
  row.Bind(1, workload.id);
  row.Bind(2, workload.told);
  if (row.Row(); !row.done()) CountError("that a workload was searched could not be noted");
}

bool Store::Replace(uint64_t id, const std::vector<uint8_t>& learned) {
  Statement row(database_.get(), "UPDATE workload SET learned = ?2 WHERE id = ?1");
  row.Bind(1, id);
  row.Bind(2, learned);
  if (row.Row(); !row.done()) {
    CountError("what was found for a workload could not be kept");
    return false;
  }
  return sqlite3_changes(database_.get()) == 1;
}

void Store::Decide(uint64_t id, const Decision& decision) {
  Log(kLogInfo, "workload %llu: %s: %s (a period took %.6g s, now %.6g s)",
      static_cast<unsigned long long>(id), decision.what.c_str(), decision.reason.c_str(),
      decision.before_seconds, decision.after_seconds);
  Statement row(database_.get(),
                "INSERT INTO decision (workload, number, at, what, before, after, reason) VALUES"
                " (?1, (SELECT coalesce(max(number), 0) + 1 FROM decision WHERE workload = ?1),"
                " ?2, ?3, ?4, ?5, ?6)");
  row.Bind(1, id);
  row.Bind(2, Now());
  row.Bind(3, decision.what);
  row.Bind(4, decision.before_seconds);
  row.Bind(5, decision.after_seconds);
  row.Bind(6, decision.reason);
  if (row.Row(); !row.done() || !KeepLast("decision", static_cast<int64_t>(id))) {
    CountError("a decision could not be kept");
  }
}

std::vector<Store::Decision> Store::Decisions(uint64_t id) {
  Statement row(database_.get(),
                "SELECT at, what, before, after, reason FROM decision WHERE workload = ?"
                " ORDER BY number");
  row.Bind(1, id);
  std::vector<Decision> list;
  while (row.Row()) {
    list.push_back({row.Integer(0), std::string(row.Text(1)), row.Real(2), row.Real(3),
                    std::string(row.Text(4))});
  }
  return list;
}

std::optional<std::vector<uint8_t>> Store::Known(uint32_t user, uint64_t key) {
  Statement row(database_.get(), "SELECT learned FROM workload WHERE user = ? AND key = ?");
  row.Bind(1, user);
  row.Bind(2, key);
  if (!row.Row()) return std::nullopt;
  return std::vector<uint8_t>(row.Blob(0).begin(), row.Blob(0).end());
}

}  // namespace atp::daemon
