// SPDX-License-Identifier: Apache-2.0
// Names and texts of CUresult values, generated from cuda.h. Constant; any thread.
#pragma once

#include "sim/driver/cuda_api.h"

namespace atp::sim {

struct ErrorName {
  int value;
  const char* name;
  const char* text;
};

// Null when there is no such error.
const ErrorName* FindErrorName(CUresult error);

}  // namespace atp::sim
