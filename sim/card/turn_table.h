// SPDX-License-Identifier: Apache-2.0
// Who of the programs on one simulated card acts next: the one whose next act is the earliest in
// virtual time, of equal ones the one with the smallest number. Nobody acts before each of them has
// said when it wants to, so that the order hangs on virtual time alone and never on how fast the
// programs are. A program that neither says anything nor uses a processor for a second of real time
// (it sleeps, is stopped, waits for another one) does not hold the others up until it comes back.
//
// One thread for each member; the one whose turn it is runs, the others wait.
#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "sim/machine/member.h"

namespace atp::sim {

class TurnTable : public Turns {
 public:
  // Nobody acts before so many members have been there.
  explicit TurnTable(unsigned members) : awaited_(members) {}

  // `wanted`: a number, or kMostMembers for any free one. kMostMembers: there is none.
  Member Join(Member wanted, pid_t process);
  void Refused();  // one that came is not let in, and is not waited for
  void Leave();    // the current member, in its turn
  // The current member makes a call at `time`. True: it was asleep.
  bool Begin(Time time);
  void End();  // and is on its own again
  bool Await(Time time) override;
  bool Over();  // all have come and all have left
  std::vector<std::pair<Member, pid_t>> Present();

 private:
  enum class State : uint8_t { kFree, kAway, kAsleep, kHere };
  struct Seat {
    State state = State::kFree;
    Time wants = 0;
    pid_t process = 0;
    uint64_t used = 0;  // processor time, when last looked at
    int quiet = 0;      // looks without use of a processor
  };
  using Lock = std::unique_lock<std::mutex>;
  Member Next() const;
  bool AwaitTurn(Member member, Lock& lock);
  void LookAtThoseAway();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Seat, kMostMembers> seats_;
  unsigned awaited_;  // members still to come
  std::chrono::steady_clock::time_point looked_;
  uint64_t turns_ = 0;
  Member last_ = kMostMembers;
};

}  // namespace atp::sim
