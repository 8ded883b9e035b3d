// SPDX-License-Identifier: Apache-2.0
// The symbols that only the simulated driver has (sim/host_symbols.h).
#include <algorithm>
#include <map>

#include "sim/driver/driver.h"
#include "sim/host_symbols.h"

#define ATP_SIM_API extern "C" __attribute__((visibility("default")))

using atp::sim::Driver;

ATP_SIM_API uint32_t atpSimLane(uint32_t number) {
  Driver& driver = Driver::Get();
  atp::sim::ThreadState& thread = driver.Thread();
  std::lock_guard<std::mutex> lock(driver.mutex);
  const uint32_t before = thread.current_lane;
  if (!driver.initialised()) return before;
  driver.PrepareThread(thread);
  if (number != 0 && !thread.lanes.count(number))
    thread.lanes[number] = driver.machine().NewLane(driver.machine().Now(thread.lane));
  thread.current_lane = number;
  thread.lane = number == 0 ? thread.own : thread.lanes[number];
  return before;
}

ATP_SIM_API uint64_t atpSimNow(void) {
  Driver& driver = Driver::Get();
  atp::sim::ThreadState& thread = driver.Thread();
  std::lock_guard<std::mutex> lock(driver.mutex);
  if (!driver.initialised()) return 0;
  driver.PrepareThread(thread);
  return static_cast<uint64_t>(driver.machine().Now(thread.lane) / atp::sim::kNs);
}

ATP_SIM_API int atpSimWaitAny(const CUevent* events, uint32_t count, uint64_t deadline_ns) {
  Driver& driver = Driver::Get();
  atp::sim::ThreadState& thread = driver.Thread();
  std::lock_guard<std::mutex> lock(driver.mutex);
  if (!driver.initialised()) return count ? 0 : -1;
  driver.PrepareThread(thread);
  atp::sim::Pump(driver);
  std::vector<atp::sim::EventId> ids;
  std::vector<int> index_of;
  for (uint32_t i = 0; i < count; ++i) {
    const atp::sim::Event* event = driver.events.Get(events[i]);
    if (!event || (!event->recorded && event->records_held_up == 0)) return static_cast<int>(i);
    if (event->records_held_up) continue;  // cannot complete before somebody lets its stream go on
    ids.push_back(event->id);
    index_of.push_back(static_cast<int>(i));
  }
  constexpr uint64_t kLatest = static_cast<uint64_t>(atp::sim::kNever / atp::sim::kNs);
  const atp::sim::Time deadline = deadline_ns >= kLatest
                                      ? atp::sim::kNever
                                      : static_cast<atp::sim::Time>(deadline_ns) * atp::sim::kNs;
  const int found = driver.machine().WaitAny(thread.lane, ids, deadline);
  return found < 0 ? -1 : index_of[static_cast<size_t>(found)];
}

ATP_SIM_API int atpSimCard(uint32_t index, atpSimCardUse* use) {
  Driver& driver = Driver::Get();
  std::lock_guard<std::mutex> lock(driver.mutex);
  if (!use || driver.forked() || !driver.initialised()) return 0;
  if (index >= static_cast<uint32_t>(driver.settings().machine.devices)) return 0;
  const int device = static_cast<int>(index);
  atp::sim::Lane lane = 0;
  *use = {};
  use->free_bytes = driver.machine().Info(device).free_bytes;
  use->busy_ns = static_cast<uint64_t>(driver.machine().KernelBusy(device) / atp::sim::kNs);
  if (driver.LastLane(&lane))
    use->now_ns = static_cast<uint64_t>(driver.machine().Now(lane) / atp::sim::kNs);
  for (const atp::sim::Context* context : driver.contexts.all())
    use->contexts += context->device->index == device;
  return 1;
}

ATP_SIM_API uint32_t atpSimProcesses(uint32_t index, atpSimProcess* processes, uint32_t capacity) {
  Driver& driver = Driver::Get();
  std::lock_guard<std::mutex> lock(driver.mutex);
  if (driver.forked() || !driver.initialised()) return 0;
  if (index >= static_cast<uint32_t>(driver.settings().machine.devices)) return 0;
  auto uses = driver.machine().Processes(static_cast<int>(index));
  std::stable_partition(uses.begin(), uses.end(), [](const auto& use) { return use.process == 0; });
  for (size_t i = 0; i < uses.size() && i < capacity; ++i)
    processes[i] = {uses[i].bytes, uses[i].process};
  return static_cast<uint32_t>(uses.size());
}

ATP_SIM_API uint64_t atpSimHostFree(void) {
  Driver& driver = Driver::Get();
  std::lock_guard<std::mutex> lock(driver.mutex);
  return driver.initialised() && !driver.forked() ? driver.machine().HostFree() : UINT64_MAX;
}

ATP_SIM_API int64_t atpSimTouched(atpSimTouch* touches, uint64_t capacity) {
  constexpr uint64_t kPieceBytes = 64 << 10;
  Driver& driver = Driver::Get();
  atp::sim::ThreadState& thread = driver.Thread();
  std::lock_guard<std::mutex> lock(driver.mutex);
  thread.asks_for_touches = true;
  const std::shared_ptr<atp::sim::KernelTouches> last = std::move(thread.touches);
  thread.touches = nullptr;
  if (last == nullptr || !last->known) return -1;
  std::map<uint64_t, uint8_t> pieces;
  for (const atp::sim::WaveTouches& wave : last->waves) {
    for (const atp::sim::PageTouch& touch : wave.pages)
      pieces[(touch.page << atp::sim::kPageBits) / kPieceBytes * kPieceBytes] |= touch.flags;
  }
  uint64_t count = 0;
  for (const auto& [address, flags] : pieces) {
    if (count == capacity) break;
    touches[count++] = {address, (flags & atp::sim::PageTouch::kRead) != 0,
                        (flags & atp::sim::PageTouch::kWrite) != 0};
  }
  return static_cast<int64_t>(pieces.size());
}
