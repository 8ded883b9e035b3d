// SPDX-License-Identifier: Apache-2.0
// What stays on the device while nobody knows what comes next (no period): the items used most
// often are kept, the rest passes through a part of the room that is theirs. Where uses are skewed
// (experts, hubs of a graph) this is static pinning by frequency, learned as the program runs;
// where all are used alike (scans of changing length) it protects a fixed subset, which is what
// oldest-first cannot do (ObservUVM, ISCA'26; ARIADNE, HPCA'26). Pure; one thread; O(1) a use, and
// O(log n) for what moves.
#pragma once

#include <cstdint>
#include <list>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "policy/trace.h"

namespace atp::policy {

class HotSet {
 public:
  using Id = uint32_t;  // small and dense
  struct Use {
    Id id = 0;
    Bytes bytes = 0;  // of the whole item; always the same
  };
  struct Moves {
    bool served = true;           // false: the launch alone exceeds the room; nothing moves for it
    std::vector<Id> leave;        // before the fetches
    std::vector<Id> fetch;        // before the launch
    std::vector<Id> leave_ahead;  // room for the next ones; may wait for the fetches
  };

  // Bytes of items on the device never exceed the room after a launch's moves.
  void SetRoom(Bytes room) { room_ = room; }
  // A launch uses these items; the answer holds until the next call.
  const Moves& Launch(std::span<const Use> uses);
  void Remove(Id id);  // it is gone
  void Clear();        // nothing is known to be on the device any more

  Bytes resident() const { return kept_bytes_ + passing_bytes_; }
  bool IsResident(Id id) const;
  bool IsKept(Id id) const;

 private:
  enum class State : uint8_t { kAway, kKept, kPassing };
  struct Item {
    Bytes bytes = 0;
    State state = State::kAway;
    double heat = 0;                // sum of its uses, each by `unit_` as it was then
    double ranked = 0;              // its heat when it was ranked among those that are kept
    uint64_t launch = 0;            // that used it last
    std::list<Id>::iterator place;  // among those that pass
  };

  double Uses(const Item& item) const { return item.heat / unit_; }
  Bytes KeptRoom() const;
  Item& At(Id id);
  void Warm(Item* item);
  void RankAgain();
  void Enter(Id id, Item* item);
  bool MakeRoomAmongKept(const Item& item);
  void Keep(Id id, Item* item);
  void Demote(Id id, Item* item);
  bool LeaveOne(bool passing_only, std::vector<Id>* leave);
  void TakeAway(Id id, Item* item);

  Bytes room_ = 0, kept_bytes_ = 0, passing_bytes_ = 0;
  Bytes known_bytes_ = 0;  // of all items
  Bytes largest_ = 0;      // most bytes that one launch has used
  uint64_t launches_ = 0;
  double unit_ = 1;  // what a use counts now: more and more, so that earlier ones fade
  std::vector<Item> items_;
  std::set<std::pair<double, Id>> kept_;  // by rank, coldest first
  std::list<Id> passing_;                 // used longest ago first
  Moves moves_;
};

}  // namespace atp::policy
