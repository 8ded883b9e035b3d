// SPDX-License-Identifier: Apache-2.0
// What the loop of one device tells the record file (protocol/run_record.h): a row for each
// iteration that has ended, now and then a measured iteration in full, and notes of what was
// switched off. A row is a few stores to mapped memory; a measured iteration is written when its
// times are read, one period in many. The lock of the loop is held. Every call is allowed without
// a record, and does nothing then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/run_record.h"
#include "shim/link_meter.h"
#include "shim/loop.h"
#include "shim/period_timer.h"
#include "shim/plain_clock.h"
#include "shim/schedule.h"

namespace atp::shim {

class LoopRecord {
 public:
  static constexpr size_t kMostMoves = 8192;  // that are kept of a measured iteration

  // Memory will have to move from now on. `capacity`: the budget less head-room.
  void Open(int device, uint64_t budget, uint64_t capacity);
  void Budget(uint64_t budget, uint64_t capacity);  // from now on

  // An iteration begins, and with it the one before has ended.
  struct Start {
    uint64_t now_ns = 0;
    uint32_t plan = 0, phase = 0;
    uint64_t managed = 0, native = 0;
  };
  void Iteration(const Start& start);
  void Took(double seconds);  // the last one that has ended
  // Iterations on plain memory that have ended before the first planned one, and later their times.
  void PlainIterations(uint32_t count, uint32_t phase);
  void PlainTook(const PlainClock::Seconds& seconds, uint32_t count);
  void SubmittedWhole() { submitted_whole_ = true; }  // the iteration under way
  void Broken();  // no iteration begins behind the one under way
  // `copied`: to the host; false = the copy there was valid.
  void Moved(const Action& action, bool to_device, bool copied);

  // A measured iteration: it is about to start, its launches are submitted, its times are there.
  void StartMeasuring(std::shared_ptr<const Schedule> schedule, uint64_t capacity);
  void Launch(uint32_t position, const LaunchView& launch, uint64_t resident);
  struct Times {
    const std::vector<double>* seconds;  // of each launch
    const std::vector<double>* offsets;  // of its begin
    uint64_t begin_ns;                   // of the first; 0 = not known
  };
  void Measured(const Times& times, const policy::LinkRates& link, const LinkMeter::Log& moves);

  void EndedReadMostly(const Allocation& allocation);  // by a write
  // `off`: no hints at all from now on.
  void Note(bool off, const char* format, ...) __attribute__((format(printf, 3, 4)));

 private:
  struct Submitted {
    const char* name;
    uint64_t resident;
  };
  void Append(const protocol::RunRecordRow& row);
  uint64_t& TimeIn(uint32_t phase);
  void KeepBest(const std::vector<double>& seconds);

  int device_ = 0;
  protocol::RunRecordDevice* out_ = nullptr;
  bool under_way_ = false, submitted_whole_ = false;
  protocol::RunRecordRow current_{};
  uint64_t first_plain_ = 0;
  std::shared_ptr<const Schedule> schedule_;  // of the measured iteration
  uint64_t capacity_ = 0;
  std::vector<Submitted> submitted_;  // its launches, by position
  uint64_t measured_row_ = 0;
  uint32_t measured_phase_ = 0;
  std::vector<double> best_;  // shortest time of each position of `best_phase_`
  uint32_t best_phase_ = 0;
  struct Phase {
    uint32_t phase;
    uint64_t ns;  // in its planned iterations
  };
  std::vector<Phase> phases_;
  uint32_t shown_phase_ = 0;  // of the newest snapshot
};

}  // namespace atp::shim
