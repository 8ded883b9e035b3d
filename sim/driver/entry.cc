// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/entry.h"

#include "sim/driver/capture.h"
#include "sim/driver/driver.h"
#include "sim/driver/graph.h"
#include "sim/driver/symbols.h"

namespace atp::sim {
namespace {

std::atomic<const Entry*> first_entry{nullptr};
thread_local int per_thread_depth = 0;

}  // namespace

Entry::Entry(const char* name, const char* cost_name, bool supported)
    : name_(name), cost_name_(cost_name), supported_(supported), version_(SymbolVersion(name)) {
  const Entry* head = first_entry.load(std::memory_order_relaxed);
  do {
    next_ = head;
  } while (!first_entry.compare_exchange_weak(head, this, std::memory_order_release));
}

const Entry* Entry::First() { return first_entry.load(std::memory_order_acquire); }

Call::Call(Entry& entry, unsigned needs)
    : driver(Driver::Get()), thread(driver.Thread()), lock(driver.mutex) {
  entry.Count();
  result_ = Check(entry, needs);
  if (result_ == CUDA_SUCCESS && driver.initialised() && entry.cost_name())
    driver.machine().SpendCall(lane(), entry.cost_name());
}

Call::~Call() {
  if (driver.doomed_objects.empty()) return;
  const std::vector<UserObject*> doomed = std::move(driver.doomed_objects);
  driver.doomed_objects.clear();
  lock.unlock();
  for (UserObject* object : doomed) {
    object->destroy(object->argument);
    delete object;
  }
}

CUresult Call::Check(Entry& entry, unsigned needs) {
  if (entry.version() > driver.settings().driver_version) return CUDA_ERROR_NOT_SUPPORTED;
  const bool needs_init = (needs & (kNeedsInit | kNeedsContext)) != 0;
  if (driver.initialised()) driver.PrepareThread(thread);
  const Faults::Outcome fault = driver.faults().Meet(entry.name(), entry.calls());
  if (fault.delay && driver.initialised()) driver.machine().Spend(lane(), fault.delay);
  slow = fault.slow;
  if (fault.result != CUDA_SUCCESS) return fault.result;
  if (needs_init && !driver.initialised()) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs_init && driver.forked()) return CUDA_ERROR_NOT_INITIALIZED;
  if (needs_init && thread.in_host_function) return CUDA_ERROR_NOT_PERMITTED;
  if (!thread.contexts.empty()) context = thread.contexts.back();
  if (needs & kNeedsContext) {
    const CUresult result = CheckContext(needs);
    if (result != CUDA_SUCCESS) return result;
  }
  if (needs & kUnsafeInCapture) return CheckUnsafeInCapture(driver, thread);
  return CUDA_SUCCESS;
}

CUresult Call::CheckContext(unsigned needs) {
  if (!context) return CUDA_ERROR_INVALID_CONTEXT;
  if (!driver.contexts.Get(context)) {
    context = nullptr;
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  }
  if (needs & kIgnoresStickyErrors) return CUDA_SUCCESS;
  return Health(driver, *context);
}

Machine& Call::machine() { return driver.machine(); }

Lane Call::lane() const { return thread.lane; }

PerThreadStreams::PerThreadStreams() { ++per_thread_depth; }
PerThreadStreams::~PerThreadStreams() { --per_thread_depth; }
bool PerThreadStreams::Selected() { return per_thread_depth > 0; }

}  // namespace atp::sim
