// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/error_names.h"

namespace atp::sim {
namespace {

const ErrorName kNames[] = {
#include "error_names.inc"
};

}  // namespace

const ErrorName* FindErrorName(CUresult error) {
  for (const ErrorName& row : kNames) {
    if (row.value == static_cast<int>(error)) return &row;
  }
  return nullptr;
}

}  // namespace atp::sim
