// SPDX-License-Identifier: Apache-2.0
// What every exported function does first: count the call, take the driver's lock, check that the
// driver and a context are there, answer an injected fault, and charge the call's CPU time to the
// calling thread's lane.
//
//   ATP_API cuMemFree_v2(CUdeviceptr address) {
//     ATP_CALL(kNeedsContext, cost::kFree);
//     ...
//   }
//
// Threads: any. A Call holds the one global lock until it goes out of scope.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "sim/driver/cuda_api.h"
#include "sim/machine/machine.h"

namespace atp::sim {

class Driver;
struct Context;
struct ThreadState;

// One exported function: its name, its cost and how often it was called. Objects are static locals
// with trivial destruction, linked into a list that the statistics read at exit.
class Entry {
 public:
  Entry(const char* name, const char* cost_name, bool supported = true);
  void Count() { calls_.fetch_add(1, std::memory_order_relaxed); }

  const char* name() const { return name_; }
  const char* cost_name() const { return cost_name_; }
  bool supported() const { return supported_; }
  uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
  int version() const { return version_; }  // CUDA version in which the symbol appeared
  const Entry* next() const { return next_; }
  static const Entry* First();

 private:
  const char* const name_;
  const char* const cost_name_;
  const bool supported_;
  const int version_;
  std::atomic<uint64_t> calls_{0};
  const Entry* next_ = nullptr;
};

// What a function needs before its body may run.
enum Needs : unsigned {
  kNeedsNothing = 0,
  kNeedsInit = 1,
  kNeedsContext = 2,         // a current context that is alive and healthy; implies kNeedsInit
  kUnsafeInCapture = 4,      // prohibited while a conflicting stream capture is under way
  kIgnoresStickyErrors = 8,  // clean-up that must work in a dead context
};

class Call {
 public:
  Call(Entry& entry, unsigned needs);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool failed() const { return result_ != CUDA_SUCCESS; }
  CUresult result() const { return result_; }

  Driver& driver;
  ThreadState& thread;
  Context* context = nullptr;  // the current one, null when there is none
  Time slow = 0;               // an injected fault: what the call submits takes longer
  std::unique_lock<std::mutex> lock;

  Machine& machine();
  Lane lane() const;

 private:
  CUresult Check(Entry& entry, unsigned needs);
  CUresult CheckContext(unsigned needs);
  CUresult result_ = CUDA_SUCCESS;
};

// While one of these lives, stream 0 of this thread means its per-thread default stream.
class PerThreadStreams {
 public:
  PerThreadStreams();
  ~PerThreadStreams();
  static bool Selected();
};

// Names of API costs in the machine's table of costs.
namespace cost {
inline constexpr const char* kNone = nullptr;
inline constexpr const char* kCall = "call_cpu";  // whatever has no cost of its own
inline constexpr const char* kQuery = "query_cpu";
inline constexpr const char* kAlloc = "alloc_cpu";
inline constexpr const char* kFree = "free_cpu";
inline constexpr const char* kAllocManaged = "alloc_managed_cpu";
inline constexpr const char* kFreeManaged = "free_managed_cpu";
inline constexpr const char* kAllocHost = "alloc_host_cpu";
inline constexpr const char* kFreeHost = "free_host_cpu";
inline constexpr const char* kLaunch = "launch_cpu";
inline constexpr const char* kCopy = "copy_cpu";
inline constexpr const char* kSync = "sync_cpu";
inline constexpr const char* kEvent = "event_cpu";
inline constexpr const char* kStream = "stream_cpu";
inline constexpr const char* kModule = "module_cpu";
inline constexpr const char* kGraphLaunch = "graph_launch_cpu";
inline constexpr const char* kGraphNode = "graph_node_cpu";
inline constexpr const char* kContext = "context_cpu";
}  // namespace cost

}  // namespace atp::sim

#define ATP_CALL(needs, cost_name)               \
  using namespace atp::sim;                      \
  static Entry atp_entry(__func__, (cost_name)); \
  Call call(atp_entry, (needs));                 \
  if (call.failed()) return call.result()
