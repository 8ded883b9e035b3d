// SPDX-License-Identifier: Apache-2.0
// What people ask the store: what there is, and to forget it.
#include "daemon/statement.h"
#include "daemon/store.h"

namespace atp::daemon {

std::vector<Store::Workload> Store::List(uint32_t user) {
  std::vector<Workload> list;
  Statement rows(database_.get(),
                 "SELECT id, device, command, length(learned) + length(fingerprint), told"
                 " FROM workload WHERE user = ? ORDER BY used DESC");
  rows.Bind(1, user);
  const auto number = [](const Statement& row, int column) {
    return static_cast<uint64_t>(row.Integer(column));
  };
  while (rows.Row()) {
    list.push_back({number(rows, 0),
                    std::string(rows.Text(1)),
                    std::string(rows.Text(2)),
                    number(rows, 3),
                    number(rows, 4),
                    {},
                    {}});
  }
  if (!rows.done()) CountError("what is known could not be read");
  for (Workload& workload : list) {
    workload.decisions = Decisions(workload.id);
    Statement runs(database_.get(),
                   "SELECT at, capacity, periods, best, bound, plain FROM run WHERE workload = ?"
                   " ORDER BY number, at");
    runs.Bind(1, workload.id);
    while (runs.Row()) {
      workload.runs.push_back({runs.Integer(0), number(runs, 1), number(runs, 2), runs.Real(3),
                               runs.Real(4), runs.Real(5)});
    }
  }
  return list;
}

uint64_t Store::Forget(uint32_t user, uint64_t id) {
  Statement row(database_.get(), "DELETE FROM workload WHERE user = ?1 AND (?2 = 0 OR id = ?2)");
  row.Bind(1, user);
  row.Bind(2, id);
  if (row.Row(); !row.done()) {
    CountError("a workload could not be forgotten");
    return 0;
  }
  const auto gone = static_cast<uint64_t>(sqlite3_changes(database_.get()));
  counters_.forgotten += gone;
  return gone;
}

std::optional<std::vector<uint8_t>> Store::Get(uint32_t user, uint64_t id) {
  Statement row(database_.get(), "SELECT learned FROM workload WHERE user = ? AND id = ?");
  row.Bind(1, user);
  row.Bind(2, id);
  if (!row.Row()) return std::nullopt;
  return std::vector<uint8_t>(row.Blob(0).begin(), row.Blob(0).end());
}

}  // namespace atp::daemon
