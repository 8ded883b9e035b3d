// SPDX-License-Identifier: Apache-2.0
// Values of neighbouring threads, computed at once while they are linear in the thread's number:
// thread k of the row has bits + k * step. Sums and products with what is the same in all threads
// stay linear modulo the register's width; comparisons, divisions and conversions are followed
// where no thread's value wraps around, and where all threads agree. Otherwise the row has to be
// split. Pure functions. For purity_run.cc only.
#pragma once

#include <cstdint>

#include "ptx/reach_code.h"

namespace atp::ptx {

struct RowValue {
  enum class State : uint8_t {
    kUnknown,  // not known, or made of a pointer's value by other than adding to it
    kRagged,   // known in each thread, but not linear
    kKnown,
  };
  // kNumber, kParameterBuffer, or 1 + the number of the pointer that `bits` counts from.
  using Origin = uint16_t;
  static constexpr Origin kNumber = 0, kParameterBuffer = 0xFFFF;

  uint64_t bits = 0;  // of the first thread
  int64_t step = 0;
  Origin origin = kNumber;
  State state = State::kKnown;

  static RowValue Unknown() { return {0, 0, kNumber, State::kUnknown}; }
  bool known() const { return state == State::kKnown; }
  bool same() const { return step == 0; }  // in all threads
  bool number() const { return origin == kNumber; }
};

// The results of a step that computes (not one that loads, touches or branches), for a row of
// `count` threads. False: the row has to be split; never for a single thread.
bool ComputeRow(const ReachStep& step, const RowValue from[4], uint64_t count, RowValue to[2]);

}  // namespace atp::ptx
