// SPDX-License-Identifier: Apache-2.0
// Reads the binary form of a trace. The bytes may come from anyone: each chunk is verified before
// it is looked at, and every index, range and number is checked, so that whoever gets a TraceFile
// may rely on it. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "protocol/trace_file.h"

namespace atp::protocol {

struct ReadOptions {
  bool accept_truncated = false;  // a last chunk that is cut off is left out instead of an error
};

// True when the bytes start like the binary form.
bool LooksLikeTrace(std::span<const uint8_t> bytes);

// False: `error` says what is wrong and where, and `trace` is not to be used.
bool ReadTrace(std::span<const uint8_t> bytes, const ReadOptions& options, TraceFile* trace,
               std::string* error);

}  // namespace atp::protocol
