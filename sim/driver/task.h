// SPDX-License-Identifier: Apache-2.0
// One piece of work of a stream or a graph: what a launch, copy, set, host function or event call
// asks for, with its arguments already checked and copied. A task may run at once, wait in a
// stream's backlog, or be kept in a graph. RunTask does the work for real and hands its timing to
// the machine. Under the driver's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "sim/driver/cuda_api.h"
#include "sim/machine/machine.h"

namespace atp::sim {

class Driver;
struct Context;
struct Event;
struct Function;
struct Graph;
struct Stream;

// What a launch has touched, left for whoever asks (atpSimTouched).
struct KernelTouches {
  bool known = false;
  std::vector<WaveTouches> waves;
};

struct KernelTask {
  Function* function = nullptr;
  LaunchConfig config;
  std::vector<uint8_t> params;             // packed, KernelInfo::param_bytes long
  std::shared_ptr<KernelTouches> touches;  // null: nobody asks
};

// A copy of up to three dimensions; plain copies have height and depth 1. Addresses are of devices
// or of the host.
struct CopyTask {
  uint64_t source = 0, destination = 0;
  uint64_t source_pitch = 0, destination_pitch = 0;  // bytes from row to row
  uint64_t source_slice = 0, destination_slice = 0;  // bytes from slice to slice
  uint64_t width = 0, height = 1, depth = 1;         // width in bytes
  bool peer = false;                                 // asked for by a peer copy call
  uint64_t bytes() const { return width * height * depth; }
};

struct SetTask {
  uint64_t destination = 0;
  uint64_t pitch = 0;
  unsigned element_bytes = 1;
  uint32_t value = 0;
  uint64_t width = 0, height = 1;  // width in elements
};

struct HostTask {
  CUhostFn function = nullptr;
  void* argument = nullptr;
  CUstreamCallback callback = nullptr;  // instead of `function`: a stream callback
  CUstream handle = nullptr;            // what the callback is told
};

struct RecordTask {
  std::shared_ptr<Event> event;
  uint64_t recording = 0;  // of an event between processes
};

struct WaitTask {
  std::shared_ptr<Event> event;
  uint64_t recording = 0;  // the one it waits for, of an event between processes
};

// A wait for or a write of a 32 or 64 bit value in memory.
struct ValueTask {
  bool wait = false;
  bool wide = false;
  uint64_t address = 0;
  uint64_t value = 0;
  unsigned flags = 0;
};

// A prefetch or discard of managed memory. Never part of a graph.
struct HintTask {
  uint64_t address = 0, bytes = 0;
  bool discard = false;   // what is there is not needed any more
  bool prefetch = false;  // bring it to `location`
  int location = 0;       // kHost or a device index
};

struct EmptyTask {};

struct ChildTask {
  std::shared_ptr<Graph> graph;
};

struct GraphAllocTask {  // a memory allocation node: the memory is there as long as the node is
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  std::shared_ptr<void> memory;  // shared by the copies of the node; the last one returns it
};

struct FreeTask {  // returns memory to its pool; memory of a graph stays with the graph
  uint64_t address = 0;
};

using Task = std::variant<KernelTask, CopyTask, SetTask, HostTask, RecordTask, WaitTask, ValueTask,
                          HintTask, EmptyTask, ChildTask, GraphAllocTask, FreeTask>;

// Runs a task that is ready. `lane` is the clock of the thread that asked for it.
CUresult RunTask(Driver& driver, Lane lane, Stream& stream, const Task& task);

// The parts of RunTask, by theme: launch.cc, copy.cc, set.cc, host_functions.cc, value.cc,
// hints_api.cc.
CUresult RunKernel(Driver& driver, Lane lane, Stream& stream, const KernelTask& task);
CUresult RunCopy(Driver& driver, Lane lane, Stream& stream, const CopyTask& task);
CUresult RunSet(Driver& driver, Lane lane, Stream& stream, const SetTask& task);
CUresult RunHostFunction(Driver& driver, Lane lane, Stream& stream, const HostTask& task);
CUresult RunHint(Driver& driver, Lane lane, Stream& stream, const HintTask& task);
CUresult RunValue(Driver& driver, Lane lane, Stream& stream, const ValueTask& task);
// True when the awaited value is there.
bool ValueIsThere(Driver& driver, const ValueTask& task);

// Argument checks that all callers of a copy or a set need; CUDA_SUCCESS when the task can run in
// `context`.
CUresult CheckCopy(Driver& driver, const Context& context, const CopyTask& task);
CUresult CheckSet(Driver& driver, const Context& context, const SetTask& task);

}  // namespace atp::sim
