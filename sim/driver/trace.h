// SPDX-License-Identifier: Apache-2.0
// The true trace of a run (ATP_SIM_TRACE): the raw body of the exchange form, JSON lines, with what
// each launch, copy and set really touched, merged at 64 KiB. Written as the program goes; flushed
// at synchronisation. Under the driver's lock. Does nothing until Open.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "sim/machine/machine.h"

namespace atp::sim {

struct Allocation;
struct CopyTask;
struct KernelTask;
struct SetTask;
struct Stream;
class Memory;
struct Settings;

class Trace {
 public:
  // False when the file cannot be written.
  bool Open(const std::string& path, const Settings& settings, const Machine& machine,
            const Memory* memory);
  bool is_open() const { return file_ != nullptr; }

  void Allocated(const Allocation& allocation);
  void Freed(const Allocation& allocation);
  void Launched(const Stream& stream, const KernelTask& task, const ExecResult& result,
                Time resident);
  void Copied(const Stream& stream, const CopyTask& task, CopyKind kind);
  void Set(const Stream& stream, const SetTask& task);
  void Mark(const char* text);
  void Flush();

 private:
  struct Touch {
    uint64_t begin, end;
    bool read, write, overwritten;
  };
  std::string TouchesJson(std::vector<Touch> touches) const;
  std::string ProgramRange(uint64_t address, uint64_t bytes, const char* how) const;
  void Line(const std::string& name, const std::string& signature, double us, const Stream& stream,
            const std::string& touches);

  FILE* file_ = nullptr;
  const Memory* memory_ = nullptr;
  uint64_t launches_ = 0;
  double h2d_ = 0, d2h_ = 0, device_ = 0;  // bytes per second
};

}  // namespace atp::sim
