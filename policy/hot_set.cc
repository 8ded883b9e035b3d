// SPDX-License-Identifier: Apache-2.0
#include "policy/hot_set.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {
namespace {

// A use counts half after so many later uses of anything.
constexpr double kHalfLife = 2048;
// An item takes the place of a kept one when it is used this much more often, and by more than the
// one use by which two items of a scan always differ.
constexpr double kHotter = 1.25, kMoreUses = 1.5;
// Of the room, what items pass through at least.
constexpr Bytes kLeastPassing = 32;

}  // namespace

// Two launches must find room to pass: one that runs, and one whose items arrive.
Bytes HotSet::KeptRoom() const {
  return room_ - std::min(std::max(room_ / kLeastPassing, 2 * largest_), room_);
}

const HotSet::Moves& HotSet::Launch(std::span<const Use> uses) {
  ++launches_;
  moves_.served = true;
  moves_.leave.clear();
  moves_.fetch.clear();
  moves_.leave_ahead.clear();

  Bytes all = 0, missing = 0;
  for (const Use& use : uses) {
    Item& item = At(use.id);
    if (item.launch == launches_) continue;  // used twice
    item.launch = launches_;
    known_bytes_ += use.bytes - item.bytes;
    item.bytes = use.bytes;
    Warm(&item);
    all += item.bytes;
    if (item.state == State::kAway) missing += item.bytes;
  }
  if (all > room_) {
    moves_.served = false;
    return moves_;
  }
  largest_ = std::max(largest_, all);
  while (resident() + missing > room_ && LeaveOne(/*passing_only=*/false, &moves_.leave)) {
  }
  for (const Use& use : uses) {
    Item& item = items_[use.id];
    const bool away = item.state == State::kAway;
    if (away) moves_.fetch.push_back(use.id);
    if (item.state != State::kKept) Enter(use.id, &item);
  }
  // As much again as this launch lacked, or the next one waits for what has to leave; but not more
  // than there is elsewhere.
  const Bytes next = std::min(missing, known_bytes_ - resident());
  while (next > 0 && resident() + next > room_ &&
         LeaveOne(/*passing_only=*/true, &moves_.leave_ahead)) {
  }
  return moves_;
}

HotSet::Item& HotSet::At(Id id) {
  if (id >= items_.size()) items_.resize(id + 1);
  return items_[id];
}

// Scores fade by the same factor in the same time: instead, later uses count more.
void HotSet::Warm(Item* item) {
  static const double kGrowth = std::exp2(1 / kHalfLife);
  constexpr double kLargest = 1e100;
  item->heat += unit_;
  if ((unit_ *= kGrowth) < kLargest) return;
  for (Item& each : items_) each.heat /= kLargest, each.ranked /= kLargest;
  unit_ /= kLargest;
  const std::set<std::pair<double, Id>> kept = std::move(kept_);
  kept_.clear();
  for (const auto& [heat, id] : kept) kept_.insert({items_[id].ranked, id});
}

// Uses make items warmer than their rank says. The coldest by rank is ranked again until it is the
// coldest indeed.
void HotSet::RankAgain() {
  while (!kept_.empty()) {
    const Id id = kept_.begin()->second;
    Item& item = items_[id];
    if (item.ranked == item.heat) return;
    auto node = kept_.extract(kept_.begin());
    item.ranked = item.heat;
    node.value().first = item.ranked;
    kept_.insert(std::move(node));
  }
}

// Of a launch: kept if it may be, else it passes and is the last one to leave.
void HotSet::Enter(Id id, Item* item) {
  const bool keep = MakeRoomAmongKept(*item);
  if (item->state == State::kPassing && !keep) {
    passing_.splice(passing_.end(), passing_, item->place);
    return;
  }
  TakeAway(id, item);
  if (keep) return Keep(id, item);
  item->state = State::kPassing;
  item->place = passing_.insert(passing_.end(), id);
  passing_bytes_ += item->bytes;
}

// Colder ones make way, but only as many as it takes, and none that is used by this very launch.
bool HotSet::MakeRoomAmongKept(const Item& item) {
  const Bytes room = KeptRoom();
  if (item.bytes > room) return false;
  const bool shrunk = kept_bytes_ > room;  // launches have grown: the coldest go in any case
  Bytes left = kept_bytes_;
  std::vector<Id> colder;
  if (left + item.bytes > room) RankAgain();
  for (auto it = kept_.begin(); left + item.bytes > room && it != kept_.end(); ++it) {
    const Item& other = items_[it->second];
    if (other.launch == launches_) continue;
    if (!shrunk && Uses(item) < kHotter * Uses(other) + kMoreUses) return false;
    colder.push_back(it->second);
    left -= other.bytes;
  }
  if (left + item.bytes > room) return false;
  for (const Id id : colder) Demote(id, &items_[id]);
  return true;
}

void HotSet::Keep(Id id, Item* item) {
  item->state = State::kKept;
  item->ranked = item->heat;
  kept_.insert({item->ranked, id});
  kept_bytes_ += item->bytes;
}

// The next one to leave.
void HotSet::Demote(Id id, Item* item) {
  kept_.erase({item->ranked, id});
  kept_bytes_ -= item->bytes;
  item->state = State::kPassing;
  item->place = passing_.insert(passing_.begin(), id);
  passing_bytes_ += item->bytes;
}

bool HotSet::LeaveOne(bool passing_only, std::vector<Id>* leave) {
  const auto usable = [&](Id id) { return items_[id].launch != launches_; };
  const auto passing = std::find_if(passing_.begin(), passing_.end(), usable);
  if (passing != passing_.end()) {
    const Id id = *passing;
    leave->push_back(id);
    TakeAway(id, &items_[id]);
    return true;
  }
  if (passing_only) return false;
  RankAgain();
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return usable(k.second); });
  if (kept == kept_.end()) return false;
  const Id id = kept->second;
  leave->push_back(id);
  TakeAway(id, &items_[id]);
  return true;
}

void HotSet::TakeAway(Id id, Item* item) {
  if (item->state == State::kPassing) {
    passing_.erase(item->place);
    passing_bytes_ -= item->bytes;
  } else if (item->state == State::kKept) {
    kept_.erase({item->ranked, id});
    kept_bytes_ -= item->bytes;
  }
  item->state = State::kAway;
}

void HotSet::Remove(Id id) {
  Item& item = At(id);
  TakeAway(id, &item);
  known_bytes_ -= item.bytes;
  item = {};
}

void HotSet::Clear() {
  kept_.clear();
  passing_.clear();
  kept_bytes_ = passing_bytes_ = 0;
  for (Item& item : items_) item.state = State::kAway;
}

bool HotSet::IsResident(Id id) const {
  return id < items_.size() && items_[id].state != State::kAway;
}

bool HotSet::IsKept(Id id) const { return id < items_.size() && items_[id].state == State::kKept; }

}  // namespace atp::policy
