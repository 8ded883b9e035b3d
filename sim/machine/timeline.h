// SPDX-License-Identifier: Apache-2.0
// What happened when, for people (ATP_SIM_TIMELINE): Chrome's trace-event format, which Perfetto
// and chrome://tracing show. One process per device with tracks for kernels, for the copy engines
// of both directions and for the calls of each host lane that hint. Written as simulated time
// passes, under the driver's lock. Does nothing until Open.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "sim/machine/machine.h"

namespace atp::sim {

class Timeline {
 public:
  Timeline() = default;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;
  ~Timeline();

  // False when the file cannot be written.
  bool Open(const std::string& path);
  bool is_open() const { return file_ != nullptr; }

  void Flush();

  struct Memory {
    Time fault_time;          // the part during which the kernel waited for its pages,
    uint64_t faults;          // after so many faults
    uint64_t resident_bytes;  // managed memory on the device when it ended
  };
  void Kernel(int device, const std::string& name, Time begin, Time end, const Memory& memory);
  void Transfer(int device, bool to_host, bool by_program, Time begin, Time end);
  void Call(int device, Lane lane, const char* name, uint64_t address, uint64_t bytes, Time begin,
            Time end);

 private:
  void Span(int device, const std::string& track, const std::string& name, Time begin, Time end,
            const std::string& arguments);

  FILE* file_ = nullptr;
};

}  // namespace atp::sim
