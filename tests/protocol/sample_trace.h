// SPDX-License-Identifier: Apache-2.0
// A trace with all kinds of rows, and its bytes.
#pragma once

#include <string>
#include <vector>

#include "protocol/trace_file.h"
#include "protocol/trace_writer.h"

namespace atp::protocol {

inline TraceFile SampleRaw(size_t launches = 100) {
  TraceFile file;
  file.header = {"sample", "a test", 1 << 30, 1u << 31, 25e9, 24e9, 12e9, 23e9, "{\"batch\":4}"};
  file.strings = {"managed", "kernel", "memcpy_h2d", "iteration", "{\"x\":1}"};
  for (uint64_t id = 1; id <= 8; ++id)
    file.allocations.push_back({id, 1 << 20, id, 0, 0, kNoString});
  file.frees.push_back({8, 50, 4});
  file.marks.push_back({10, 3, kNoString});
  for (size_t i = 0; i < launches; ++i) {
    file.launches.push_back({0x1234 + i % 7, 1e-6 * double(i), 1 + uint32_t(i % 2), 3, 0,
                             file.touches.size(), 2, i % 10 == 0 ? 4 : kNoString});
    file.touches.push_back({1 + i % 8, 4096 * (i % 16), 4096, kReads});
    file.touches.push_back({1 + (i + 1) % 8, 0, 1 << 20, kOverwrites});
  }
  return file;
}

inline TraceFile SampleTensors(size_t steps = 100) {
  TraceFile file;
  file.header.name = "tensors";
  file.header.h2d_bytes_per_s = file.header.d2h_bytes_per_s = 16e9;
  file.strings = {"weight", "launch"};
  for (uint32_t i = 0; i < 10; ++i) {
    file.strings.push_back(std::string("t").append(std::to_string(i)));
    file.tensors.push_back({4096ull * (i + 1), 2 + i, 0, i % 2 == 0, kNoString});
  }
  for (size_t i = 0; i < steps; ++i) {
    file.steps.push_back({1e-3, 17, 1, 0, file.uses.size(), 2, 1, kNoString});
    for (uint32_t use : {i % 10, (i + 1) % 10, (i + 2) % 10}) file.uses.push_back(use);
  }
  return file;
}

inline std::vector<uint8_t> BytesOf(const TraceFile& file) {
  std::vector<uint8_t> bytes;
  WriteTrace(file, [&](const uint8_t* data, size_t size) {
    bytes.insert(bytes.end(), data, data + size);
    return true;
  });
  return bytes;
}

}  // namespace atp::protocol
