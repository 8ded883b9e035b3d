// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/host_functions.h"

#include <thread>

#include "sim/driver/driver.h"

namespace atp::sim {
namespace {

// How long a host function keeps its stream busy in virtual time: hand-over to and from the
// driver's thread. An estimate; what the function itself does costs nothing, because virtual time
// must not depend on wall time.
constexpr Time kHostFunctionTime = 10 * kUs;

}  // namespace

void HostFunctions::Start(Stream& stream, const HostTask& task) {
  stream.in_host_function = true;
  std::lock_guard<std::mutex> lock(mutex_);
  ready_.push_back({&stream, stream.number, task});
  if (!running_) {
    running_ = true;
    std::thread([this] { Loop(); }).detach();
  }
  wake_.notify_one();
}

void HostFunctions::Loop() {
  driver_.Thread().in_host_function = true;
  for (;;) {
    std::unique_lock<std::mutex> lock(mutex_);
    wake_.wait(lock, [this] { return !ready_.empty(); });
    const Ready ready = ready_.front();
    ready_.pop_front();
    lock.unlock();
    Run(ready);
  }
}

void HostFunctions::Run(const Ready& ready) {
  const HostTask& task = ready.task;
  if (task.callback) {
    task.callback(task.handle, CUDA_SUCCESS, task.argument);
  } else {
    task.function(task.argument);
  }
  std::lock_guard<std::mutex> lock(driver_.mutex);
  Stream* stream = driver_.streams.Get(ready.stream);
  if (stream && stream->number == ready.number) stream->in_host_function = false;
  Pump(driver_);
  driver_.changed.notify_all();
}

CUresult RunHostFunction(Driver& driver, Lane lane, Stream& stream, const HostTask& task) {
  driver.machine().SubmitDelay(lane, stream.id, kHostFunctionTime);
  driver.host_functions().Start(stream, task);
  return CUDA_SUCCESS;
}

}  // namespace atp::sim
