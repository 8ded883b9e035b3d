// SPDX-License-Identifier: Apache-2.0
// Where a program wants to read why its code could not be loaded or linked: the error buffer among
// the JIT options of cuModuleLoadDataEx and cuLinkCreate. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "sim/driver/cuda_api.h"

namespace atp::sim {

struct JitLog {
  char* buffer = nullptr;  // of the program
  size_t bytes = 0;

  static JitLog Of(unsigned count, const CUjit_option* options, void** values);
  void Write(const std::string& text) const;
};

}  // namespace atp::sim
