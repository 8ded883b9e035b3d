// SPDX-License-Identifier: Apache-2.0
// The timing model of one simulated machine: host lanes, streams, copy engines, the link, and
// unified memory as NVIDIA's driver keeps it (docs/sim.md; facts from NVIDIA's open kernel
// modules).
//
// The driver layer executes work at once and then submits it here, so that nothing in this
// folder ever touches data. Everything runs under the driver's lock, on whatever thread calls: a
// discrete-event simulation that advances only as far as somebody asks. Times are integers: a run
// with one program thread gives the same digits everywhere.
//
// Lanes: each host thread that calls the driver has a clock of its own. A call is made at the
// lane's now, costs the lane CPU time, and a blocking call moves the lane to the completion. Work
// submitted at a lane's now starts no earlier.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/exec/exec.h"

namespace atp::sim {

using Time = int64_t;  // picoseconds of virtual time
inline constexpr Time kNs = 1000, kUs = 1000 * kNs, kMs = 1000 * kUs, kSecond = 1000 * kMs;
inline constexpr Time kNever = INT64_MAX;

using Lane = uint32_t;
using StreamId = uint32_t;
using EventId = uint32_t;
inline constexpr int kHost = -1;  // a location that is not a device

inline constexpr uint64_t kBlockBytes =
    2u << 20;  // VA block and root chunk (docs/sim.md, "Unified memory")

// What a kernel costs and touches. `resident_time` = roofline time with everything resident.
struct KernelWork {
  std::string name;
  Time resident_time = 0;
  std::vector<WaveTouches> waves;
  uint64_t threads =
      0;  // threads that run at the same time: no more pages fault at once. 0 = enough
  uint64_t sector_bytes =
      0;  // ExecResult::sector_bytes: what accesses to host memory move. 0 = whole pages
};

enum class CopyKind { kHostToDevice, kDeviceToHost, kDeviceToDevice, kSet, kHostToHost, kPeer };

// A copy or set by a copy engine. Managed ranges that it reads or writes are given, because copy
// engines fault too.
struct CopyWork {
  CopyKind kind = CopyKind::kHostToDevice;
  uint64_t bytes = 0;
  uint64_t source = 0;       // address when it is managed or device memory, else 0
  uint64_t destination = 0;  // likewise
  bool pageable_host =
      false;  // staged through the driver's own pinned buffer: slower, and the call blocks the lane
};

enum class Advice {
  kSetReadMostly,
  kUnsetReadMostly,
  kSetPreferred,
  kUnsetPreferred,
  kSetAccessedBy,
  kUnsetAccessedBy
};

enum class MachineStatus {
  kOk,
  kOutOfMemory,
  kContextDead,  // host memory ran out while evicting: the driver cancels all faults and the
                 // context is lost
  kInvalidValue,
};

struct MachineConfig {
  std::string profile = "a100-40g";  // a row of profiles; costs.def lists every parameter
  uint64_t device_bytes = 0;         // 0 = the profile's
  uint64_t host_bytes = 0;           // 0 = no limit
  int devices = 1;
  std::string overrides;  // ATP_SIM_SET: "name=value,..."
  std::string timeline;   // ATP_SIM_TIMELINE: file for what happened when; empty = none
};

struct DeviceShape {  // what the driver layer reports and the roofline uses
  std::string name;
  uint64_t total_bytes = 0;  // usable bytes of the card
  int major = 8, minor = 0;
  int multiprocessors = 108;
  int clock_khz = 0, memory_clock_khz = 0, memory_bus_bits = 0;
  int max_threads_per_multiprocessor = 2048, max_blocks_per_multiprocessor = 32;
  int shared_bytes_per_multiprocessor = 0, shared_bytes_per_block_optin = 0;
  int registers_per_multiprocessor = 65536;
  uint64_t l2_bytes = 0;
};

struct MemoryInfo {
  uint64_t free_bytes = 0, total_bytes = 0;
};

struct ProcessUse {
  int process = 0;     // 0: the program that asks
  uint64_t bytes = 0;  // plain, and what managed memory holds of the card
};

class Machine {
 public:
  // Fails with a clear `error` (names the value and what is allowed) on an unknown profile, an
  // unknown cost name or a malformed value.
  static std::unique_ptr<Machine> Create(const MachineConfig& config, std::string* error);
  virtual ~Machine() = default;

  virtual const DeviceShape& Shape(int device) const = 0;
  // Roofline: executed instructions, L2 sectors and distinct bytes against the profile's rates.
  virtual Time KernelTime(int device, const LaunchConfig& config,
                          const ExecResult& result) const = 0;

  // --- lanes
  virtual Lane NewLane(Time start) = 0;
  virtual Time Now(Lane lane) const = 0;
  virtual void Spend(Lane lane, Time cost) = 0;
  // CPU cost of an API call by name of the parameter in costs.def ("launch_cpu", "copy_cpu",
  // "alloc_cpu", "sync_cpu", "call_cpu", ...). An unknown name is a mistake in the caller and
  // aborts. Prefetch, Advise, Discard, HostAccess, AllocDevice's evictions and RemoveManaged's
  // blocks charge what they cost by themselves; the Submit calls charge nothing.
  virtual void SpendCall(Lane lane, const char* cost_name) = 0;

  // --- plain device memory: pinned; evicts managed memory when it must
  virtual MachineStatus AllocDevice(Lane lane, int device, uint64_t bytes) = 0;
  virtual void FreeDevice(Lane lane, int device, uint64_t bytes) = 0;
  virtual MemoryInfo Info(int device) const = 0;

  // --- managed memory (address and bytes page aligned)
  virtual void AddManaged(Lane lane, uint64_t address, uint64_t bytes) = 0;
  virtual void RemoveManaged(Lane lane,
                             uint64_t address) = 0;  // waits trackers; content is no longer live
  virtual MachineStatus Prefetch(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                                 int location) = 0;
  virtual MachineStatus Advise(Lane lane, uint64_t address, uint64_t bytes, Advice advice,
                               int location) = 0;
  virtual MachineStatus Discard(Lane lane, StreamId stream, uint64_t address, uint64_t bytes,
                                bool then_prefetch, int location) = 0;
  // The host reads or writes managed memory (a CPU fault, or the driver's own host copy).
  virtual MachineStatus HostAccess(Lane lane, uint64_t address, uint64_t bytes, bool write) = 0;
  virtual bool ResidentOnHost(uint64_t address) const = 0;
  // Residency of one page: kHost, a device, or -2 when nowhere yet. For tests and ATP_ACCESS_STATS.
  virtual int Residency(uint64_t address) const = 0;

  // --- streams and events. Stream 0 of a device is its legacy default stream.
  virtual StreamId NewStream(int device, bool blocks_with_legacy) = 0;
  virtual StreamId LegacyStream(int device) const = 0;
  virtual void DropStream(Lane lane, StreamId stream) = 0;  // queued work still runs
  virtual EventId NewEvent() = 0;
  virtual void DropEvent(EventId event) = 0;

  virtual void SubmitKernel(Lane lane, StreamId stream, KernelWork work) = 0;
  virtual void SubmitCopy(Lane lane, StreamId stream, CopyWork work) = 0;
  virtual void SubmitDelay(Lane lane, StreamId stream,
                           Time duration) = 0;  // host functions, waits on values
  virtual void Record(Lane lane, StreamId stream, EventId event) = 0;
  virtual void Wait(Lane lane, StreamId stream,
                    EventId event) = 0;  // no-op when the event was never recorded

  // Queries are answered as of the lane's now. Sync calls move the lane to the completion.
  virtual bool Done(Lane lane, StreamId stream) = 0;
  virtual bool EventDone(Lane lane, EventId event) = 0;  // true when never recorded
  virtual void SyncStream(Lane lane, StreamId stream) = 0;
  virtual void SyncEvent(Lane lane, EventId event) = 0;
  virtual void SyncDevice(Lane lane,
                          int device) = 0;  // every stream of the device, ours and the program's
  virtual Time EventTime(EventId event) const = 0;  // kNever when not complete
  // Moves the lane to the first completion among `events`, or to `deadline`, whichever is first;
  // returns the index, -1 for the deadline. kNever = no deadline. Nothing later than that moment
  // has been simulated when it returns.
  virtual int WaitAny(Lane lane, std::span<const EventId> events, Time deadline) = 0;

  // A sticky failure of the device (host memory exhausted), kOk otherwise.
  virtual MachineStatus Health(int device) const = 0;
  // Who is on the device: on a machine of its own the program alone.
  virtual std::vector<ProcessUse> Processes(int device) const = 0;
  // How long kernels that have ended ran on the device, faults included.
  virtual Time KernelBusy(int device) const = 0;
  // Bytes that managed memory may still take of the host; UINT64_MAX without a limit.
  virtual uint64_t HostFree() const = 0;
  // Everything counted so far, as JSON text (ATP_SIM_STATS). Finishes outstanding work first.
  virtual std::string StatsJson() = 0;
  // Everything that has happened so far is in the timeline's file.
  virtual void FlushTimeline() = 0;
  // Lets `device` reach the memory of `peer` (cuCtxEnablePeerAccess): its faults may then map pages
  // there.
  virtual void SetPeerAccess(int device, int peer, bool enabled) = 0;
  virtual uint64_t DiscardViolations() const = 0;  // reads of discarded live memory; must stay 0
};

}  // namespace atp::sim
