// SPDX-License-Identifier: Apache-2.0
// Reads the record of a run (run_record.h) out of bytes that may be hostile, cut off, or of another
// version. Pure; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/run_record.h"

namespace atp::protocol {

struct MeasuredIteration {
  RunRecordSnapshot head{};
  std::vector<RunRecordLaunch> launches;
  std::vector<RunRecordTensor> tensors;
  std::vector<RunRecordMove> moves;
  std::vector<uint32_t> uses;
  std::string names;  // each ends with a 0

  std::string NameOf(const RunRecordLaunch& launch) const;
};

struct DeviceRun {
  RunRecordDevice facts{};         // its rings are below, in order
  uint64_t first_row = 0;          // number of rows[0]
  std::vector<RunRecordRow> rows;  // oldest first
  std::vector<RunRecordNote> notes;
  std::optional<MeasuredIteration> measured;
};

struct RunRecord {
  RunRecordHeader header{};
  std::vector<DeviceRun> devices;  // that have a part in the record
};

// Empty: understood. Else what is wrong with it.
std::string ReadRunRecord(std::span<const char> bytes, RunRecord* run);

}  // namespace atp::protocol
