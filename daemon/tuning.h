// SPDX-License-Identifier: Apache-2.0
// Which workload is searched for better choices when, and what becomes of what is found: offered to
// its next run, tried there on the live job, kept or rejected by what the job has measured. Every
// decision is kept in the store with its figures and its reason, and said in the log. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "daemon/store.h"
#include "daemon/tuner.h"

namespace atp::daemon {

struct TuningOptions {
  bool on = true;
  double share = 0.5;  // of one core
  int nice = 19;
  std::chrono::seconds idle{10};  // nobody has said anything for so long
  policy::DriverCosts costs;
};

// `told` is what a run has said; `stored` what was known before (null: nothing). What stays known
// of choices: those in force and those on offer are the store's, whatever is told; a run decides
// about what it was offered, and about nothing else. `decision->what` is empty when nothing was
// decided.
void MergeTuning(const protocol::Learned* stored, protocol::Learned* told,
                 Store::Decision* decision);

class Tuning {
 public:
  using Clock = std::chrono::steady_clock;

  Tuning(Store* store, const TuningOptions& options) : store_(*store), options_(options) {}

  void Set(const TuningOptions& options);
  // A client has said something: whoever runs comes first.
  void Busy(Clock::time_point now) { last_ = now; }
  // To be called now and then.
  void Tick(Clock::time_point now);

  struct Counters {
    uint64_t searches = 0, offered = 0;
  };
  const Counters& counters() const { return counters_; }
  void AwaitSearch() { tuner_.Await(); }
  bool searching() const { return tuner_.busy(); }
  bool on() const { return options_.on; }

 private:
  void End(const Found& found);

  Store& store_;
  TuningOptions options_;
  Tuner tuner_;
  Clock::time_point last_{};
  Store::ToTune job_;
  protocol::Tuning from_;  // in force when the search began
  Counters counters_;
};

}  // namespace atp::daemon
