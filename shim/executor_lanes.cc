// SPDX-License-Identifier: Apache-2.0
// The program's own thread plays the movers' lanes in virtual time: the executor for the simulated
// machine. Whoever could act first in virtual time acts first, so that a run is deterministic to
// the last digit.
#include <algorithm>

#include "shim/executor.h"

namespace atp::shim {
namespace {

constexpr uint64_t kNever = UINT64_MAX;

class LaneExecutor : public Executor {
 public:
  LaneExecutor(LaneCalls calls, std::vector<Mover*> movers, uint32_t first_lane)
      : calls_(calls), cursor_(first_lane + static_cast<uint32_t>(movers.size())) {
    for (Mover* mover : movers) players_.push_back({mover, first_lane++, {}, false, 0});
  }

  void Changed() override {}

  void CatchUp(std::unique_lock<std::mutex>& lock) override {
    Play(lock, calls_.now(), {}, [] { return false; });
  }

  bool Await(std::unique_lock<std::mutex>& lock, const std::function<bool()>& done) override {
    if (stopped_) return false;
    if (!Play(lock, kNever, {}, done)) return false;
    MoveTo(last_act_);  // the program's thread slept until the mover's call had returned
    return true;
  }

  void AwaitEvents(std::unique_lock<std::mutex>& lock, std::span<const CUevent> events) override {
    std::vector<CUevent> left(events.begin(), events.end());
    Play(lock, kNever, std::move(left), [] { return false; });
  }

  void Stop() override { stopped_ = true; }

 private:
  struct Player {
    Mover* mover;
    uint32_t lane;
    Poll poll;
    bool calling;       // inside a driver call until ready_at
    uint64_t ready_at;  // earliest moment of its next act, in virtual ns
  };

  // Lets movers act in order of virtual time until `done`, or until everything up to `until` has
  // happened, or until all `goals` have completed. False when nobody can go on.
  bool Play(std::unique_lock<std::mutex>& lock, uint64_t until, std::vector<CUevent> goals,
            const std::function<bool()>& done) {
    const bool has_goals = !goals.empty();
    LookAll(calls_.now());
    while (!stopped_) {
      if (done()) return true;
      Player* next = FirstReady();
      const uint64_t act_at = next != nullptr ? next->ready_at : kNever;
      waits_ = goals;
      for (const Player& p : players_) {
        if (p.poll.kind == Poll::Kind::kEvent) waits_.push_back(p.poll.event);
      }
      if (next == nullptr && waits_.empty()) return false;
      const int fired = waits_.empty() ? -1 : WaitAny(std::min(act_at, until));
      if (fired >= 0 && static_cast<size_t>(fired) < goals.size()) {
        goals.erase(goals.begin() + fired);
        if (has_goals && goals.empty()) return true;
      } else if (fired >= 0) {
        Fire(waits_[fired]);
      } else if (act_at <= until && next != nullptr) {
        Act(next, lock);
      } else {
        return false;
      }
    }
    return false;
  }

  void LookAll(uint64_t now) {
    for (Player& p : players_) {
      if (p.calling) continue;
      const bool was_idle = p.poll.kind == Poll::Kind::kIdle;
      p.poll = p.mover->Look();
      // What has just become possible is not possible earlier, even if it now waits for an event of
      // the past.
      if (p.poll.kind != Poll::Kind::kIdle && was_idle) p.ready_at = std::max(p.ready_at, now);
    }
  }

  Player* FirstReady() {
    Player* first = nullptr;
    for (Player& p : players_) {
      if (!p.calling && p.poll.kind != Poll::Kind::kReady) continue;
      if (first == nullptr || p.ready_at < first->ready_at) first = &p;
    }
    return first;
  }

  int WaitAny(uint64_t deadline) {
    const uint32_t own = calls_.lane(cursor_);
    const int fired =
        calls_.wait_any(waits_.data(), static_cast<uint32_t>(waits_.size()), deadline);
    cursor_now_ = calls_.now();
    calls_.lane(own);
    return fired;
  }

  void Fire(CUevent event) {
    for (Player& p : players_) {
      if (p.poll.kind == Poll::Kind::kEvent && p.poll.event == event) {
        p.mover->OnEvent(event);
        p.poll = {};
        p.ready_at = std::max(p.ready_at, cursor_now_);
      }
    }
    LookAll(cursor_now_);
  }

  // A call's effects are not known to anybody before the moment at which it returns.
  void Act(Player* player, std::unique_lock<std::mutex>& lock) {
    if (player->calling) {
      player->calling = false;
      player->mover->Finish();
      last_act_ = player->ready_at;
      LookAll(last_act_);
      return;
    }
    const uint32_t own = calls_.lane(player->lane);
    MoveTo(player->ready_at);
    player->poll = {};
    player->mover->Act(lock);
    player->calling = true;
    player->ready_at = calls_.now();
    calls_.lane(own);
  }

  void MoveTo(uint64_t when) {
    if (calls_.now() < when) calls_.wait_any(nullptr, 0, when);
  }

  LaneCalls calls_;
  uint32_t cursor_;
  uint64_t cursor_now_ = 0;
  uint64_t last_act_ = 0;
  bool stopped_ = false;
  std::vector<Player> players_;
  std::vector<CUevent> waits_;
};

}  // namespace

std::unique_ptr<Executor> MakeLaneExecutor(LaneCalls calls, std::vector<Mover*> movers,
                                           uint32_t first_lane) {
  return std::make_unique<LaneExecutor>(calls, std::move(movers), first_lane);
}

}  // namespace atp::shim
