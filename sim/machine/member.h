// SPDX-License-Identifier: Apache-2.0
// The programs that share a machine (docs/sim.md, "One card, several programs"). Each has its own
// part of the address space: its number stands above the bits that addresses use. A machine of one
// program knows member 0 alone.
#pragma once

#include <cstdint>

#include "sim/machine/machine.h"

namespace atp::sim {

using Member = uint32_t;
inline constexpr Member kMostMembers = 16;
inline constexpr int kMemberShift = 52;

inline Member MemberOf(uint64_t address) { return static_cast<Member>(address >> kMemberShift); }
inline uint64_t FirstAddressOf(Member member) {
  return static_cast<uint64_t>(member) << kMemberShift;
}

// The one that the calling thread acts for.
Member CurrentMember();
void SetCurrentMember(Member member);

// Who may move simulated time on.
class Turns {
 public:
  virtual ~Turns() = default;
  // The current member has nothing to do before `time`. Returns when no other one could act
  // earlier; true when others have acted meanwhile, so that what was to happen next must be looked
  // up again. kNever: false when nobody has anything to do any more.
  virtual bool Await(Time time) = 0;
};

}  // namespace atp::sim
