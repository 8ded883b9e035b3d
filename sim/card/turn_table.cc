// SPDX-License-Identifier: Apache-2.0
#include "sim/card/turn_table.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace atp::sim {
namespace {

constexpr auto kLookEvery = std::chrono::milliseconds(250);
constexpr int kQuietLooks = 4;

// Clock ticks that a process has used, and whether one of its threads could run at this moment.
uint64_t UsedBy(pid_t process, bool* wants_to_run) {
  uint64_t used = 0;
  std::error_code none;
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(folder, none)) {
    std::ifstream in(task.path() / "stat");
    std::string text(std::istreambuf_iterator<char>(in), {});
    const size_t name_end = text.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream fields(text.substr(name_end + 1));
    std::string state, skipped;
    uint64_t user = 0, system = 0;
    fields >> state;
    for (int i = 0; i < 10; ++i) fields >> skipped;
    fields >> user >> system;
    used += user + system;
    *wants_to_run |= state == "R";
  }
  return used;
}

}  // namespace

Member TurnTable::Join(Member wanted, pid_t process) {
  std::lock_guard lock(mutex_);
  Member member = wanted;
  if (wanted == kMostMembers) {
    for (member = 0; member < kMostMembers && seats_[member].state != State::kFree; ++member) {
    }
  }
  if (member >= kMostMembers || seats_[member].state != State::kFree) return kMostMembers;
  seats_[member] = {State::kAway, 0, process, 0, 0};
  if (awaited_ > 0) --awaited_;
  changed_.notify_all();
  return member;
}

void TurnTable::Refused() {
  std::lock_guard lock(mutex_);
  if (awaited_ > 0) --awaited_;
  changed_.notify_all();
}

void TurnTable::Leave() {
  std::lock_guard lock(mutex_);
  seats_[CurrentMember()].state = State::kFree;
  changed_.notify_all();
}

bool TurnTable::Begin(Time time) {
  Lock lock(mutex_);
  Seat& seat = seats_[CurrentMember()];
  const bool slept = seat.state == State::kAsleep;
  seat.state = State::kHere;
  seat.wants = time;
  seat.quiet = 0;
  changed_.notify_all();
  AwaitTurn(CurrentMember(), lock);
  return slept;
}

void TurnTable::End() {
  std::lock_guard lock(mutex_);
  seats_[CurrentMember()].state = State::kAway;
  changed_.notify_all();
}

bool TurnTable::Await(Time time) {
  Lock lock(mutex_);
  seats_[CurrentMember()].wants = time;
  if (Next() == CurrentMember()) return false;
  changed_.notify_all();
  return AwaitTurn(CurrentMember(), lock);
}

bool TurnTable::Over() {
  std::lock_guard lock(mutex_);
  if (awaited_ > 0) return false;
  for (const Seat& seat : seats_) {
    if (seat.state != State::kFree) return false;
  }
  return true;
}

std::vector<std::pair<Member, pid_t>> TurnTable::Present() {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<Member, pid_t>> present;
  for (Member member = 0; member < kMostMembers; ++member) {
    if (seats_[member].state != State::kFree) present.push_back({member, seats_[member].process});
  }
  return present;
}

Member TurnTable::Next() const {
  Member next = kMostMembers;
  if (awaited_ > 0) return next;
  for (Member member = 0; member < kMostMembers; ++member) {
    const Seat& seat = seats_[member];
    if (seat.state == State::kAway) return kMostMembers;
    if (seat.state != State::kHere) continue;
    if (next == kMostMembers || seat.wants < seats_[next].wants) next = member;
  }
  return next;
}

// True when others had their turn before.
bool TurnTable::AwaitTurn(Member member, Lock& lock) {
  const uint64_t before = turns_;
  while (Next() != member) {
    if (changed_.wait_for(lock, kLookEvery) == std::cv_status::timeout) LookAtThoseAway();
  }
  const bool others = turns_ != before || last_ != member;
  if (last_ != member) ++turns_;
  last_ = member;
  return others;
}

void TurnTable::LookAtThoseAway() {
  const auto now = std::chrono::steady_clock::now();
  if (awaited_ > 0 || now < looked_ + kLookEvery) return;
  looked_ = now;
  for (Seat& seat : seats_) {
    if (seat.state != State::kAway) continue;
    bool wants_to_run = false;
    const uint64_t used = UsedBy(seat.process, &wants_to_run);
    seat.quiet = used == seat.used && !wants_to_run ? seat.quiet + 1 : 0;
    seat.used = used;
    if (seat.quiet < kQuietLooks) continue;
    seat.state = State::kAsleep;
    changed_.notify_all();
  }
}

}  // namespace atp::sim
