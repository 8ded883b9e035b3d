// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/nvml_api.h"

// Any number of arguments: the caller cleans up, and none is read.
#define NOT_SUPPORTED(name) \
  extern "C" __attribute__((visibility("default"))) int name() { return atp::nvml::kNotSupported; }
#include "sim/nvml/not_supported.def"
