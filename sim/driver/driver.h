// SPDX-License-Identifier: Apache-2.0
// The one object behind the exported functions: settings, machine, devices, and the sets of live
// handles. Made at the first call, never destroyed: the runtime calls the driver after static
// destruction (its libraries unload their modules then). One lock protects everything; Call
// (entry.h) takes it.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/driver/array.h"
#include "sim/driver/faults.h"
#include "sim/driver/handles.h"
#include "sim/driver/memory.h"
#include "sim/driver/settings.h"
#include "sim/driver/state.h"
#include "sim/driver/stream.h"
#include "sim/driver/trace.h"

namespace atp::sim {

struct Function;
struct Kernel;
struct Library;
struct GraphExec;
struct UserObject;
struct PhysicalMemory;

class HostFunctions;

class Driver {
 public:
  static Driver& Get();

  // cuInit: builds the machine. Says once on stderr what is wrong with the settings.
  CUresult Init();
  bool initialised() const { return machine_ != nullptr; }
  // True in a child of fork: it has no driver, as on a real machine.
  bool forked() const;

  const Settings& settings() const { return settings_; }
  Machine& machine() { return *machine_; }
  Memory& memory() { return *memory_; }
  Trace& trace() { return trace_; }
  Faults& faults() { return faults_; }
  HostFunctions& host_functions() { return *host_functions_; }
  const std::vector<Device*>& devices() const { return devices_; }
  Device* DeviceAt(int ordinal) const;

  // The calling thread's record.
  ThreadState& Thread();
  // Gives a new thread its lane, which starts where the lane that called last stands.
  void PrepareThread(ThreadState& thread);
  // The lane that called last; false when there is none yet.
  bool LastLane(Lane* lane) const {
    *lane = last_lane_;
    return has_lanes_;
  }

  Context* NewContext(Device* device, unsigned flags, bool primary);
  void DestroyContext(Lane lane, Context* context);

  uint64_t NextOrder() { return ++order_; }
  uint64_t NextNumber() { return ++number_; }

  std::mutex mutex;
  std::condition_variable changed;  // something in a backlog may have become ready

  HandleSet<Context> contexts;
  HandleSet<Stream> streams;
  HandleSet<Event> events;
  HandleSet<ModuleInstance> modules;
  HandleSet<Function> functions;
  HandleSet<Library> libraries;
  HandleSet<Kernel> kernels;
  HandleSet<Graph> graphs;
  HandleSet<GraphNode> nodes;
  HandleSet<GraphExec> graph_execs;
  HandleSet<Pool> pools;
  std::vector<Pool*> retired_pools;  // destroyed while memory of theirs was in use
  HandleSet<UserObject> user_objects;
  HandleSet<PhysicalMemory> physical;
  HandleSet<Array> arrays;
  TextureObjects textures;                    // surface objects too
  std::map<uint64_t, uint64_t> reservations;  // address ranges of cuMemAddressReserve
  std::vector<UserObject*>
      doomed_objects;  // whose destructors Call runs when it has let go of the lock
  std::vector<std::weak_ptr<Capture>> captures;       // those under way
  uint64_t execution_failures = 0;                    // launches that ended in an error
  uint64_t uninitialised_reads = 0;                   // ATP_SIM_CHECK=uninitialised
  uint64_t recalled_launches = 0;                     // executed, their touches known beforehand
  std::map<std::string, uint64_t> modelled_launches;  // by kernel: not executed at all
  std::string device_output;  // what kernels have printed and nobody has seen yet

  // Writes what kernels have printed to stdout. At synchronisation, as on a real machine.
  void FlushDeviceOutput();

 private:
  Driver();
  CUresult Build(std::string* error);
  void AddDevices();

  Settings settings_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Memory> memory_;
  Trace trace_;
  Faults faults_;
  HostFunctions* host_functions_ = nullptr;
  std::vector<Device*> devices_;
  std::vector<ThreadState*> threads_;
  CUresult init_result_ = CUDA_ERROR_NOT_INITIALIZED;
  Lane last_lane_ = 0;
  bool has_lanes_ = false;
  uint64_t order_ = 0;
  uint64_t number_ = 0;
  std::mutex threads_mutex_;       // for threads_, which is added to without the big lock
  std::vector<Context*> retired_;  // destroyed, but perhaps still on a thread's stack
};

}  // namespace atp::sim
