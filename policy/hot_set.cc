// SPDX-License-Identifier: Apache-2.0
#include "policy/hot_set.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {
namespace {

// A use counts half after so many later uses of anything.
constexpr double kHalfLife = 4096;
// An item takes the place of a kept one when it is used this much more often, and by more than the
// one use by which two items of a scan always differ.
constexpr double kHotter = 1.25, kMoreUses = 1.5;
// Share of the room that items pass through, when launches are small.
constexpr Bytes kPassingShare = 8;

}  // namespace

// Scores fade by the same factor in the same time, so their order does not change between uses: an
// item's score is kept as of time 0, in logarithms.
double HotSet::Fresh() const { return static_cast<double>(uses_) / kHalfLife; }

double HotSet::Uses(const Item& item) const { return std::exp2(item.heat - Fresh()); }

// Two launches must find room to pass: one that runs, and one whose items arrive.
Bytes HotSet::KeptRoom() const {
  const Bytes passing = std::min(std::max(room_ / kPassingShare, 2 * largest_), room_);
  return room_ - passing;
}

const HotSet::Moves& HotSet::Launch(std::span<const Use> uses) {
  ++launches_;
  moves_.served = true;
  moves_.leave.clear();
  moves_.fetch.clear();
  moves_.leave_ahead.clear();

  Bytes all = 0, missing = 0;
  for (const Use& use : uses) {
    Item& item = items_[use.id];
    if (item.launch == launches_) continue;  // used twice
    item.launch = launches_;
    known_bytes_ += use.bytes - item.bytes;
    item.bytes = use.bytes;
    Warm(&item, use.id);
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

void HotSet::Warm(Item* item, Id id) {
  ++uses_;
  if (item->state == State::kKept) kept_.erase({item->heat, id});
  const double now = Fresh();
  item->heat = item->heat == 0 ? now : now + std::log2(std::exp2(item->heat - now) + 1);
  if (item->state == State::kKept) kept_.insert({item->heat, id});
}

// Of a launch: kept if it may be, else it passes and is the last one to leave.
void HotSet::Enter(Id id, Item* item) {
  if (item->state == State::kPassing) {
    passing_.erase(item->place);
    passing_bytes_ -= item->bytes;
  }
  item->state = State::kAway;
  if (MakeRoomAmongKept(*item)) return Keep(id, item);
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
  for (auto it = kept_.begin(); left + item.bytes > room && it != kept_.end(); ++it) {
    const Item& other = items_.at(it->second);
    if (other.launch == launches_) continue;
    if (!shrunk && Uses(item) < kHotter * Uses(other) + kMoreUses) return false;
    colder.push_back(it->second);
    left -= other.bytes;
  }
  if (left + item.bytes > room) return false;
  for (const Id id : colder) Demote(id, &items_.at(id));
  return true;
}

void HotSet::Keep(Id id, Item* item) {
  item->state = State::kKept;
  kept_.insert({item->heat, id});
  kept_bytes_ += item->bytes;
}

// The next one to leave.
void HotSet::Demote(Id id, Item* item) {
  kept_.erase({item->heat, id});
  kept_bytes_ -= item->bytes;
  item->state = State::kPassing;
  item->place = passing_.insert(passing_.begin(), id);
  passing_bytes_ += item->bytes;
}

bool HotSet::LeaveOne(bool passing_only, std::vector<Id>* leave) {
  const auto usable = [&](Id id) { return items_.at(id).launch != launches_; };
  const auto passing = std::find_if(passing_.begin(), passing_.end(), usable);
  if (passing != passing_.end()) {
    const Id id = *passing;
    leave->push_back(id);
    TakeAway(id, &items_.at(id));
    return true;
  }
  if (passing_only) return false;
  const auto kept =
      std::find_if(kept_.begin(), kept_.end(), [&](const auto& k) { return usable(k.second); });
  if (kept == kept_.end()) return false;
  const Id id = kept->second;
  leave->push_back(id);
  TakeAway(id, &items_.at(id));
  return true;
}

void HotSet::TakeAway(Id id, Item* item) {
  if (item->state == State::kPassing) {
    passing_.erase(item->place);
    passing_bytes_ -= item->bytes;
  } else if (item->state == State::kKept) {
    kept_.erase({item->heat, id});
    kept_bytes_ -= item->bytes;
  }
  item->state = State::kAway;
}

void HotSet::Remove(Id id) {
  const auto found = items_.find(id);
  if (found == items_.end()) return;
  TakeAway(id, &found->second);
  known_bytes_ -= found->second.bytes;
  items_.erase(found);
}

void HotSet::Clear() {
  kept_.clear();
  passing_.clear();
  kept_bytes_ = passing_bytes_ = 0;
  for (auto& [id, item] : items_) item.state = State::kAway;
}

bool HotSet::IsResident(Id id) const {
  const auto found = items_.find(id);
  return found != items_.end() && found->second.state != State::kAway;
}

bool HotSet::IsKept(Id id) const {
  const auto found = items_.find(id);
  return found != items_.end() && found->second.state == State::kKept;
}

}  // namespace atp::policy
