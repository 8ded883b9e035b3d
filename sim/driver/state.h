// SPDX-License-Identifier: Apache-2.0
// Devices, contexts and the driver's memory of each host thread. Plain records under the driver's
// lock; the code that gives them meaning is in context.cc and the entry points.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/driver/cuda_api.h"
#include "sim/machine/machine.h"

namespace atp::sim {

struct Stream;
struct Pool;
struct KernelTouches;
struct ThreadState;
struct ModuleInstance;

struct Device {
  int ordinal = 0;  // as the program counts
  int index = 0;    // on the machine
  const DeviceShape* shape = nullptr;
  CUuuid uuid{};
  std::string uuid_text;  // "GPU-..."
  struct Context* primary = nullptr;
  int primary_references = 0;
  unsigned primary_flags = 0;
  Pool* default_pool = nullptr;
  Pool* pool = nullptr;
  uint64_t most_graph_bytes = 0;  // of allocation nodes at the same time
};

struct Context {
  Device* device = nullptr;
  bool primary = false;
  unsigned flags = 0;
  unsigned api_version = 13000;
  uint64_t id = 0;
  CUresult sticky = CUDA_SUCCESS;  // a failure after which nothing works any more
  Stream* legacy = nullptr;
  std::map<ThreadState*, Stream*> per_thread;
  std::set<Stream*> streams;  // all, default ones included
  std::set<Context*> peers;   // contexts whose memory this one may access
  std::set<ModuleInstance*> modules;
  std::map<int, size_t> limits;
  CUfunc_cache cache = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig shared_config = CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE;
};

struct ThreadState {
  bool has_lane = false;
  Lane own = 0;
  std::map<uint32_t, Lane> lanes;  // of atpSimLane; 0 is `own`
  uint32_t current_lane = 0;
  Lane lane = 0;                   // the current one
  std::vector<Context*> contexts;  // stack, top last
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  bool in_host_function = false;
  bool asks_for_touches = false;           // atpSimTouched
  std::shared_ptr<KernelTouches> touches;  // of its last launch
};

}  // namespace atp::sim
