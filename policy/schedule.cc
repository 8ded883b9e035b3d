// SPDX-License-Identifier: Apache-2.0
#include "policy/schedule.h"

#include <algorithm>

namespace atp::policy {

Schedule ToSchedule(const Plan& plan) {
  Schedule schedule;
  schedule.period_seconds = plan.period_seconds;
  for (uint32_t k = 0; k < plan.launch_start.size(); ++k) {
    schedule.launches.push_back({k, plan.launch_start[k], plan.launch_end[k]});
  }
  for (const Move& move : plan.evictions) {
    const auto kind = move.copies ? Schedule::Kind::kD2h : Schedule::Kind::kDiscard;
    schedule.moves.push_back({move.tensor, move.offset, move.bytes, kind, move.start, move.end});
  }
  for (const Move& move : plan.fetches) {
    schedule.moves.push_back(
        {move.tensor, move.offset, move.bytes, Schedule::Kind::kH2d, move.start, move.end});
  }
  std::stable_sort(schedule.moves.begin(), schedule.moves.end(),
                   [](const auto& a, const auto& b) { return a.start < b.start; });
  for (const Plan::Piece& piece : plan.initially_resident) {
    schedule.initial.push_back({piece.tensor, piece.offset, piece.bytes});
  }
  return schedule;
}

}  // namespace atp::policy
