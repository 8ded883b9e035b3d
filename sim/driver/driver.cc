// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/driver.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "sim/driver/host_functions.h"
#include "sim/driver/identity.h"
#include "sim/driver/module.h"
#include "sim/driver/pool.h"
#include "sim/driver/stats.h"
#include "sim/exec/exec.h"

namespace atp::sim {
namespace {

// Address space for managed memory beyond the cards: it costs nothing until it is used.
constexpr uint64_t kArenaShare = 16, kLeastArena = uint64_t{64} << 30;

thread_local ThreadState* thread_state = nullptr;
bool in_forked_child = false;

}  // namespace

Driver::Driver() : settings_(Settings::FromEnvironment()) {
  const std::string wrong = faults_.Parse(settings_.faults);
  if (!wrong.empty() && settings_.error.empty()) settings_.error = "ATP_SIM_FAULT: " + wrong;
  pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; });
  host_functions_ = new HostFunctions(*this);
}

Driver& Driver::Get() {
  static Driver* const driver = new Driver;  // never destroyed, see the header
  return *driver;
}

bool Driver::forked() const { return in_forked_child; }

CUresult Driver::Init() {
  if (forked()) return CUDA_ERROR_NOT_INITIALIZED;
  if (init_result_ != CUDA_ERROR_NOT_INITIALIZED) return init_result_;
  std::string error = settings_.error;
  init_result_ = CUDA_ERROR_INVALID_VALUE;
  if (error.empty()) init_result_ = Build(&error);
  if (init_result_ != CUDA_SUCCESS) {
    machine_.reset();
    if (!error.empty()) std::fprintf(stderr, "libcuda (simulated): %s\n", error.c_str());
  }
  return init_result_;
}

CUresult Driver::Build(std::string* error) {
  machine_ = settings_.card.socket.empty() ? Machine::Create(settings_.machine, error)
                                           : JoinCard(settings_.card, settings_.machine, error);
  if (!machine_) return CUDA_ERROR_INVALID_VALUE;
  uint64_t device_bytes = 0;
  for (int i = 0; i < settings_.machine.devices; ++i)
    device_bytes += machine_->Shape(i).total_bytes;
  Arena* arena = Arena::Create(std::max(kArenaShare * device_bytes, kLeastArena));
  if (!arena) {
    *error = "no room for the simulated memory: less than 8 GiB of address space (ulimit -v)";
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  memory_ = std::make_unique<Memory>(*this, *arena);
  AddDevices();
  if (devices_.empty()) return CUDA_ERROR_NO_DEVICE;
  if (!settings_.trace_file.empty() &&
      !trace_.Open(settings_.trace_file, settings_, *machine_, memory_.get())) {
    *error = "ATP_SIM_TRACE=" + settings_.trace_file + ": cannot be written";
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (settings_.threads) SetExecutionThreads(settings_.threads);
  WriteStatsAtExit();
  return CUDA_SUCCESS;
}

void Driver::AddDevices() {
  std::vector<std::string> uuids;
  for (int i = 0; i < settings_.machine.devices; ++i) uuids.push_back(UuidText(CardUuid(i)));
  for (int index : VisibleDevices(settings_, uuids)) {
    auto* device = new Device;
    device->ordinal = static_cast<int>(devices_.size());
    device->index = index;
    device->shape = &machine_->Shape(index);
    device->uuid = CardUuid(index);
    device->uuid_text = uuids[index];
    device->default_pool = device->pool = NewDefaultPool(*this, *device);
    devices_.push_back(device);
  }
}

Device* Driver::DeviceAt(int ordinal) const {
  const bool valid = ordinal >= 0 && ordinal < static_cast<int>(devices_.size());
  return valid ? devices_[static_cast<size_t>(ordinal)] : nullptr;
}

ThreadState& Driver::Thread() {
  if (!thread_state) {
    thread_state = new ThreadState;  // kept: streams and captures may name it
    std::lock_guard<std::mutex> lock(threads_mutex_);
    threads_.push_back(thread_state);
  }
  return *thread_state;
}

void Driver::PrepareThread(ThreadState& thread) {
  if (!thread.has_lane) {
    thread.own = thread.lane = machine_->NewLane(has_lanes_ ? machine_->Now(last_lane_) : 0);
    thread.has_lane = has_lanes_ = true;
  }
  last_lane_ = thread.lane;
}

Context* Driver::NewContext(Device* device, unsigned flags, bool primary) {
  auto* context = new Context;
  context->device = device;
  context->flags = flags;
  context->primary = primary;
  context->id = NextNumber();
  contexts.Add(context);
  context->legacy = NewStream(*this, *context, 0, 0);
  context->legacy->is_legacy = context->legacy->is_default = true;
  context->legacy->id = machine_->LegacyStream(device->index);
  return context;
}

void Driver::DestroyContext(Lane lane, Context* context) {
  FlushDeviceOutput();
  machine_->SyncDevice(lane, context->device->index);
  while (!context->modules.empty()) UnloadModule(*this, lane, *context->modules.begin());
  DropArraysOf(*this, lane, context);
  memory_->FreeAllOf(lane, context);
  while (!context->streams.empty()) DropStream(*this, lane, *context->streams.begin());
  for (Context* other : contexts.all()) other->peers.erase(context);
  contexts.Remove(context);
  retired_.push_back(context);
  trace_.Flush();
}

void Driver::FlushDeviceOutput() {
  if (device_output.empty()) return;
  std::fwrite(device_output.data(), 1, device_output.size(), stdout);
  std::fflush(stdout);
  device_output.clear();
}

}  // namespace atp::sim
