// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/jit_log.h"

#include <algorithm>
#include <cstring>

namespace atp::sim {

JitLog JitLog::Of(unsigned count, const CUjit_option* options, void** values) {
  JitLog log;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER) log.buffer = static_cast<char*>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      log.bytes = reinterpret_cast<size_t>(values[i]);
  }
  return log;
}

void JitLog::Write(const std::string& text) const {
  if (!buffer || bytes == 0) return;
  const size_t copied = std::min(bytes - 1, text.size());
  std::memcpy(buffer, text.data(), copied);
  buffer[copied] = 0;
}

}  // namespace atp::sim
