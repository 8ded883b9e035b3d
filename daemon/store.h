// SPDX-License-Identifier: Apache-2.0
// What atpd remembers between runs: one SQLite file (WAL). Each user has rows of their own.
// Bounded: what was used the longest time ago makes room; that is told by a counter, since clocks
// jump. A file that is damaged, or of a newer program, is set aside and never written to. Throws
// StoreError only while opening; later trouble (disk full, locked by somebody) is counted and said
// once, and the daemon goes on. One thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "protocol/learned.h"

struct sqlite3;

namespace atp::daemon {

struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// The file itself is the trouble: damaged, no store, or of a newer program.
struct UnusableStore : StoreError {
  using StoreError::StoreError;
};

struct StoreLimits {
  uint64_t bytes = 256u << 20;  // of what was learned, of all users
  uint64_t workloads = 2000;    // of one user
};

class Store {
 public:
  Store(const std::filesystem::path& file, const StoreLimits& limits);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  struct Counters {
    uint64_t asked = 0, known = 0, told = 0, refused = 0, forgotten = 0, errors = 0;
  };

  // What is known of workloads like this one, the most alike first, at most `most`. As they were
  // told: whoever reads them checks them.
  std::vector<std::vector<uint8_t>> Find(uint32_t user, const protocol::Fingerprint& like,
                                         size_t most);
  // Replaces what was known of the same workload. `job`: of the process that tells, 0 = none: what
  // its periods took is kept in the workload's history. The workload's number; 0: it could not be
  // written.
  uint64_t Remember(uint32_t user, const protocol::Learned& learned,
                    const std::vector<uint8_t>& written, uint64_t job);

  // What tuning has decided of a workload (tuning.h).
  struct Decision {
    int64_t at = 0;  // seconds since 1970
    std::string what;
    double before_seconds = 0, after_seconds = 0;  // of a period, as replayed or measured
    std::string reason;
  };
  struct ToTune {
    uint64_t id = 0;
    uint32_t user = 0;
    uint64_t told = 0;
    std::vector<uint8_t> learned;
  };
  std::optional<ToTune> NextToTune();
  void Searched(const ToTune& workload);
  bool Replace(uint64_t id, const std::vector<uint8_t>& learned);
  void Decide(uint64_t id, const Decision& decision);  // kept, and said in the log
  std::optional<std::vector<uint8_t>> Known(uint32_t user, uint64_t key);

  // What a run of a workload has reached, by its longest period.
  struct Run {
    int64_t at = 0;  // seconds since 1970, when it was last heard of
    uint64_t capacity_bytes = 0, periods = 0;
    double best_seconds = 0, bound_seconds = 0, plain_seconds = 0;  // 0 = not known
  };
  struct Workload {
    uint64_t id = 0;
    std::string device, command;
    uint64_t bytes = 0, told = 0;
    std::vector<Run> runs;            // oldest first
    std::vector<Decision> decisions;  // likewise
  };
  std::vector<Workload> List(uint32_t user);  // what was used last in front
  // 0 = all of the user's. Gives how many there were.
  uint64_t Forget(uint32_t user, uint64_t id);
  // None: the user has no such workload.
  std::optional<std::vector<uint8_t>> Get(uint32_t user, uint64_t id);

  const Counters& counters() const { return counters_; }
  uint64_t workloads();
  uint64_t bytes();
  // Where a file that could not be used was put; empty: there was none.
  const std::filesystem::path& set_aside() const { return set_aside_; }
  void SetLimits(const StoreLimits& limits) { limits_ = limits; }
  // For tests: another clock than the system's.
  void SetClock(int64_t (*clock)()) { clock_ = clock; }
  // For tests: the file may not grow beyond so many pages, or what it has.
  bool LimitPages(int pages);

 private:
  void Open();
  void Check();
  void Migrate(int from);
  std::vector<Decision> Decisions(uint64_t id);
  int64_t Now() const;
  void MakeRoom(uint32_t user);
  void RememberRun(int64_t workload, const protocol::Learned& learned, uint64_t job);
  bool KeepLast(const char* table, int64_t workload);
  bool Execute(const char* sql);
  void CountError(const char* what);
  uint64_t Number(const char* sql);

  struct Close {
    void operator()(sqlite3* database) const;
  };
  const std::filesystem::path file_;
  StoreLimits limits_;
  int64_t (*clock_)() = nullptr;
  std::filesystem::path set_aside_;
  std::unique_ptr<sqlite3, Close> database_;
  Counters counters_;
};

}  // namespace atp::daemon
