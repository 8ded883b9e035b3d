// SPDX-License-Identifier: Apache-2.0
#include "daemon/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "daemon/likeness.h"
#include "daemon/log.h"
#include "daemon/statement.h"

namespace atp::daemon {
namespace {

// Step i makes a store of version i + 1 of one of version i. Steps are never changed once released.
constexpr const char* kSteps[] = {
    "CREATE TABLE workload (id INTEGER PRIMARY KEY, user INTEGER NOT NULL, device TEXT NOT NULL,"
    " key INTEGER NOT NULL, fingerprint BLOB NOT NULL, command TEXT NOT NULL, learned BLOB NOT "
    "NULL,"
    " told INTEGER NOT NULL, used INTEGER NOT NULL, UNIQUE (user, key));"
    "CREATE INDEX workload_device ON workload (user, device);"
    "CREATE INDEX workload_used ON workload (used);",

    "CREATE TABLE run (workload INTEGER NOT NULL REFERENCES workload (id) ON DELETE CASCADE,"
    " job INTEGER NOT NULL, at INTEGER NOT NULL, capacity INTEGER NOT NULL,"
    " periods INTEGER NOT NULL, best REAL NOT NULL, bound REAL NOT NULL, plain REAL NOT NULL,"
    " PRIMARY KEY (workload, job)) WITHOUT ROWID;",

    "ALTER TABLE workload ADD COLUMN searched INTEGER NOT NULL DEFAULT 0;"  // `told` then
    "ALTER TABLE run ADD COLUMN number INTEGER NOT NULL DEFAULT 0;"  // their order: clocks jump
    "CREATE TABLE decision (workload INTEGER NOT NULL REFERENCES workload (id) ON DELETE CASCADE,"
    " number INTEGER NOT NULL, at INTEGER NOT NULL, what TEXT NOT NULL, before REAL NOT NULL,"
    " after REAL NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (workload, number)) WITHOUT ROWID;",
};
constexpr int kVersion = std::size(kSteps);
// Somebody else may hold the file for a moment (sqlite3 on the command line); clients wait for us
// as long.
constexpr int kBusyMilliseconds = 50, kOpenMilliseconds = 5000;

// Where the file goes when it cannot be used: a name that is free.
std::filesystem::path FreeName(const std::filesystem::path& file) {
  for (int i = 1;; ++i) {
    const std::filesystem::path name = file.string() + ".set-aside." + std::to_string(i);
    if (!std::filesystem::exists(name)) return name;
  }
}

std::filesystem::path SetAside(const std::filesystem::path& file) {
  const std::filesystem::path name = FreeName(file);
  for (const char* part : {"", "-wal", "-shm"}) {
    std::error_code none;
    std::filesystem::rename(file.string() + part, name.string() + part, none);
  }
  return name;
}

}  // namespace

void Store::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

Store::Store(const std::filesystem::path& file, const StoreLimits& limits)
    : file_(file), limits_(limits) {
  if (file_.has_parent_path()) std::filesystem::create_directories(file_.parent_path());
  try {
    Open();
  } catch (const UnusableStore& error) {
    database_.reset();
    set_aside_ = SetAside(file_);
    Log(kLogError, "%s: %s; it was set aside as %s, and a new one begun", file_.c_str(),
        error.what(), set_aside_.c_str());
    Open();
  }
}

Store::~Store() = default;

void Store::Open() {
  // SQLite makes its files as readable as the first one.
  const int fd = open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) throw StoreError(file_.string() + ": " + strerror(errno));
  close(fd);
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(file_.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  database_.reset(opened);
  if (result != SQLITE_OK) throw StoreError(file_.string() + ": " + sqlite3_errmsg(opened));
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_busy_timeout(opened, kOpenMilliseconds);
  Check();
  const int version = static_cast<int>(Number("PRAGMA user_version"));
  if (version > kVersion) {
    throw UnusableStore("the file is of version " + std::to_string(version) +
                        ", this program knows versions up to " + std::to_string(kVersion));
  }
  if (!Execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
               "PRAGMA foreign_keys = ON;")) {
    throw StoreError(file_.string() + ": " + sqlite3_errmsg(opened));
  }
  Migrate(version);
  sqlite3_busy_timeout(opened, kBusyMilliseconds);
}

void Store::Check() {
  Statement check(database_.get(), "PRAGMA quick_check(1)");
  const bool answered = check.Row();
  if (answered && check.Text(0) == "ok") return;
  const int error = sqlite3_errcode(database_.get());
  const bool unusable = answered || error == SQLITE_CORRUPT || error == SQLITE_NOTADB;
  if (unusable) throw UnusableStore("the file is damaged, or no store");
  throw StoreError(file_.string() + ": " + sqlite3_errmsg(database_.get()));
}

void Store::Migrate(int from) {
  for (int version = from; version < kVersion; ++version) {
    const std::string step = std::string("BEGIN IMMEDIATE;") + kSteps[version] +
                             "PRAGMA user_version = " + std::to_string(version + 1) + "; COMMIT;";
    if (Execute(step.c_str())) continue;
    const std::string why = sqlite3_errmsg(database_.get());
    Execute("ROLLBACK");
    throw StoreError(file_.string() + ": a store of version " + std::to_string(version) +
                     " could not be brought up to date: " + why);
  }
}

std::vector<std::vector<uint8_t>> Store::Find(uint32_t user, const protocol::Fingerprint& like,
                                              size_t most) {
  ++counters_.asked;
  struct Match {
    double likeness;
    int64_t id;
  };
  std::vector<Match> matches;
  Statement rows(database_.get(),
                 "SELECT id, fingerprint FROM workload WHERE user = ? AND device = ?"
                 " ORDER BY used DESC");
  rows.Bind(1, user);
  rows.Bind(2, like.device);
  while (rows.Row()) {
    protocol::Fingerprint fingerprint;
    std::string error;
    if (!protocol::Read(rows.Blob(1), &fingerprint, &error)) continue;
    const double likeness = Likeness(like, fingerprint);
    if (likeness >= kLeastLikeness) matches.push_back({likeness, rows.Integer(0)});
  }
  if (!rows.done()) CountError("what is known could not be read");
  std::stable_sort(matches.begin(), matches.end(),
                   [](const Match& a, const Match& b) { return a.likeness > b.likeness; });
  if (matches.size() > most) matches.resize(most);

  std::vector<std::vector<uint8_t>> found;
  for (const Match& match : matches) {
    Statement row(database_.get(), "SELECT learned FROM workload WHERE id = ?");
    row.Bind(1, match.id);
    if (row.Row()) found.emplace_back(row.Blob(0).begin(), row.Blob(0).end());
    Statement used(database_.get(),
                   "UPDATE workload SET used = (SELECT max(used) + 1 FROM workload) WHERE id = ?");
    used.Bind(1, match.id);
    if (used.Row(); !used.done()) CountError("the use of a workload could not be noted");
  }
  if (!found.empty()) ++counters_.known;
  return found;
}

uint64_t Store::Remember(uint32_t user, const protocol::Learned& learned,
                         const std::vector<uint8_t>& written, uint64_t job) {
  const std::vector<uint8_t> fingerprint = protocol::Write(learned.fingerprint);
  Statement row(
      database_.get(),
      "INSERT INTO workload (user, device, key, fingerprint, command, learned, told, used)"
      " VALUES (?1, ?2, ?3, ?4, ?5, ?6, 1,"
      " (SELECT coalesce(max(used), 0) + 1 FROM workload))"
      " ON CONFLICT (user, key) DO UPDATE SET learned = ?6, command = ?5,"
      " told = told + 1, used = excluded.used RETURNING id");
  row.Bind(1, user);
  row.Bind(2, learned.fingerprint.device);
  row.Bind(3, KeyOf(learned));
  row.Bind(4, fingerprint);
  row.Bind(5, learned.command);
  row.Bind(6, written);
  const int64_t id = row.Row() ? row.Integer(0) : 0;
  if (row.Row(); !row.done()) {
    CountError("what a program has told could not be kept");
    return 0;
  }
  ++counters_.told;
  if (job != 0) RememberRun(id, learned, job);
  MakeRoom(user);
  return static_cast<uint64_t>(id);
}

void Store::MakeRoom(uint32_t user) {
  const auto forget_oldest = [&](const char* whose) {
    Statement row(database_.get(), whose);
    if (sqlite3_bind_parameter_count(row.get()) > 0) row.Bind(1, user);
    if (row.Row(); !row.done() || sqlite3_changes(database_.get()) == 0) return false;
    ++counters_.forgotten;
    return true;
  };
  const auto of_user = [&] {
    Statement row(database_.get(), "SELECT count(*) FROM workload WHERE user = ?");
    row.Bind(1, user);
    return row.Row() ? static_cast<uint64_t>(row.Integer(0)) : 0;
  };
  while (of_user() > limits_.workloads &&
         forget_oldest("DELETE FROM workload WHERE id = (SELECT id FROM workload WHERE user = ?"
                       " ORDER BY used LIMIT 1)")) {
  }
  while (bytes() > limits_.bytes &&
         forget_oldest("DELETE FROM workload WHERE id = (SELECT id FROM workload"
                       " ORDER BY used LIMIT 1)")) {
  }
}

void Store::RememberRun(int64_t workload, const protocol::Learned& learned, uint64_t job) {
  if (learned.phases.empty()) return;
  const auto longest = std::max_element(
      learned.phases.begin(), learned.phases.end(),
      [](const auto& a, const auto& b) { return a.launches.size() < b.launches.size(); });
  Statement row(database_.get(),
                "INSERT OR REPLACE INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"
                " (SELECT coalesce(max(number), 0) + 1 FROM run WHERE workload = ?1))");
  row.Bind(1, workload);
  row.Bind(2, job);
  row.Bind(3, Now());
  row.Bind(4, longest->capacity_bytes);
  row.Bind(5, longest->periods);
  row.Bind(6, longest->best_seconds);
  row.Bind(7, longest->bound_seconds);
  row.Bind(8, longest->plain_seconds);
  if (row.Row(); !row.done() || !KeepLast("run", workload)) {
    CountError("what a run has reached could not be kept");
  }
}

// Of a workload's rows in `table` the newest ones.
bool Store::KeepLast(const char* table, int64_t workload) {
  constexpr int kMost = 20;
  const std::string rows = std::string(" FROM ") + table + " WHERE workload = ?1";
  const std::string text = "DELETE" + rows +
                           " AND number < (SELECT min(number) FROM (SELECT number" + rows +
                           " ORDER BY number DESC LIMIT ?2))";
  Statement old(database_.get(), text.c_str());
  old.Bind(1, workload);
  old.Bind(2, kMost);
  old.Row();
  return old.done();
}

int64_t Store::Now() const { return clock_ != nullptr ? clock_() : time(nullptr); }

bool Store::LimitPages(int pages) {
  return Execute(("PRAGMA max_page_count = " + std::to_string(pages)).c_str());
}

uint64_t Store::workloads() { return Number("SELECT count(*) FROM workload"); }

uint64_t Store::bytes() {
  return Number("SELECT coalesce(sum(length(learned) + length(fingerprint)), 0) FROM workload");
}

bool Store::Execute(const char* sql) {
  return sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) == SQLITE_OK;
}

uint64_t Store::Number(const char* sql) {
  Statement row(database_.get(), sql);
  return row.Row() ? static_cast<uint64_t>(row.Integer(0)) : 0;
}

void Store::CountError(const char* what) {
  if (++counters_.errors == 1) {
    Log(kLogError, "%s: %s: %s", file_.c_str(), what, sqlite3_errmsg(database_.get()));
  }
}

}  // namespace atp::daemon
