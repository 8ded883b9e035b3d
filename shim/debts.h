// SPDX-License-Identifier: Apache-2.0
// What has been dropped, and has to be made again before anybody can need it: one debt for each
// range. Only the books; device_loop_drop.cc runs launches and waits. Under the loop's lock, but
// for what owing.h tells.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "shim/owing.h"
#include "shim/repeatable.h"
#include "shim/schedule.h"

namespace atp::shim {

class Debts {
 public:
  enum class State : uint8_t { kDropping, kDropped, kPaying };
  struct Debt {
    std::shared_ptr<const Schedule> schedule;  // that it is of
    uint32_t drop = 0;                         // index there
    State state = State::kDropping;
    const Drop& range() const { return schedule->drops[drop]; }
    const Again& again() const { return *AgainAt(*schedule->repeatable, range().producer); }
  };

  // A plan begins to run, or ends: what it has made before is not dropped any more.
  void Follow(std::shared_ptr<const Schedule> schedule);
  // The launch that makes it goes now, as it was proven, in this period of the plan.
  void Made(uint32_t drop, uint64_t period);
  // Whoever needs it comes now, or nobody knows what does: it is not dropped any more.
  void Keep(uint32_t drop);
  void KeepAll();
  // A mover drops it. False: it must stay.
  bool Begin(uint32_t drop, uint64_t period);
  void Dropped(uint32_t drop);

  bool any() const { return !debts_.empty(); }
  bool paying() const;
  // Of those that are needed at or before this position: some are left; one of them cannot be paid
  // yet, because it is being dropped, or another is being paid.
  bool Due(uint32_t before) const;
  bool Busy(uint32_t before) const;
  // The one to be paid first: what was made first, because others may be made of it. Some are due,
  // and none is busy; Paid follows.
  Debt Take(uint32_t before);
  void Paid(bool done);
  void Void();  // the memory is gone

 private:
  std::shared_ptr<const Schedule> schedule_;
  std::vector<uint64_t>
      made_;  // per drop of it: period + 1 in which it was made and may go; 0 = none
  std::vector<Debt> debts_;
};

}  // namespace atp::shim
