// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/member.h"

namespace atp::sim {
namespace {

thread_local Member current = 0;

}  // namespace

Member CurrentMember() { return current; }
void SetCurrentMember(Member member) { current = member; }

}  // namespace atp::sim
