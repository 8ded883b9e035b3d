// SPDX-License-Identifier: Apache-2.0
// What the generated file of weak definitions needs (generate_symbols.py): the answer of a symbol
// that nobody has written, and the twins that select the per-thread default stream.
#pragma once

#include "sim/driver/cuda_api.h"
#include "sim/driver/entry.h"

#define ATP_WEAK extern "C" __attribute__((weak, visibility("default")))

using atp::sim::PerThreadStreams;

// A symbol without code. Static in its function; Answer counts the call by name.
class Unsupported {
 public:
  explicit Unsupported(const char* symbol) : entry_(symbol, nullptr, /*supported=*/false) {}
  CUresult Answer() {
    entry_.Count();
    return CUDA_ERROR_NOT_SUPPORTED;
  }

 private:
  atp::sim::Entry entry_;
};
