// SPDX-License-Identifier: Apache-2.0
// Defines the entry points of not_supported.def. Their parameters do not matter, so no CUDA header
// is included here: one function without parameters stands for any signature that returns an error
// code.

namespace atp::simrt {
int RefuseCall();  // errors.cc
}

#define NOT_SUPPORTED(name) \
  extern "C" int name() { return atp::simrt::RefuseCall(); }
#include "sim/runtime/not_supported.def"
#undef NOT_SUPPORTED
