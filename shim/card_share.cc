// SPDX-License-Identifier: Apache-2.0
#include "shim/card_share.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "protocol/message.h"
#include "protocol/share_report.h"
#include "shim/daemon_link.h"
#include "shim/managed.h"
#include "shim/neighbours.h"
#include "shim/own_calls.h"
#include "shim/own_thread.h"
#include "shim/placement.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {

std::atomic<uint32_t> g_share_version{0};
std::atomic<bool> g_share_by_turns{false};

namespace {

using namespace std::chrono_literals;

constexpr auto kAskEvery = 1s;
// Where nobody listens.
constexpr auto kLookEvery = 10s;
constexpr auto kWaitStep = 100ms;
constexpr uint64_t kTurnNs = 2'000'000;

struct Part {
  bool started = false;
  uint64_t asked_ns = 0;  // in virtual time
  uint64_t free = 0;      // the driver's number, when last asked
  uint64_t before = 0;    // the budget before the one in force
  NeighbourMemory neighbours;
  std::vector<protocol::CardProcess> processes;  // on the card, when last looked at
};
std::atomic<bool> begun[kMaxDevices];  // each allocation asks

std::mutex mutex;  // of all below, and held while the driver is asked
Part parts[kMaxDevices];
bool stopped = false;
bool daemon_silent = false;

std::string CommandLine() {
  std::string command(256, '\0');
  FILE* file = fopen("/proc/self/cmdline", "re");
  if (file == nullptr) return "";
  command.resize(fread(command.data(), 1, command.size(), file));
  fclose(file);
  std::replace(command.begin(), command.end(), '\0', ' ');
  while (!command.empty() && command.back() == ' ') command.pop_back();
  return command;
}

protocol::ShareReport ReportOn(const Device& device, Part* part, bool waits) {
  // The driver is asked only while the card is shared: otherwise nobody uses the number, and each
  // call would take its time. Nor by who waits, so that a simulated card sees it sleep.
  if (waits || device.share.load(std::memory_order_relaxed) == 0) {
    part->free = device.free_at_start;
  } else {
    WithContext current(device.context);
    size_t free = 0, total = 0;
    if (real().cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS) part->free = free;
  }
  static const std::string command = CommandLine();
  const Usage usage = UsageOf(device);
  const Configuration& settings = Settings();
  const bool limited = settings.budget.Of(device.ordinal).given;
  char card[20];
  snprintf(card, sizeof card, "%016llx", static_cast<unsigned long long>(device.card));
  protocol::ShareReport report;
  report.card = card;
  report.card_bytes = device.total;
  report.free_bytes = part->free;
  report.footprint = usage.managed + usage.native;
  report.held = std::min(report.footprint, std::max(part->before, EffectiveBudget(device)));
  report.most = limited ? device.budget : 0;
  // Who says both what it takes and that it would wait for it cannot do with less.
  report.least = limited && settings.wait_ms > 0 ? device.budget
                                                 : device.least.load(std::memory_order_relaxed);
  report.weight = settings.weight;
  report.priority = settings.priority;
  report.waits = waits;
  report.command = command;
  report.processes = part->processes;
  return report;
}

// `number`: share or beside of the device.
void Set(Device* device, std::atomic<uint64_t>* number, uint64_t value, const char* by) {
  const uint64_t before = EffectiveBudget(*device);
  number->store(value, std::memory_order_relaxed);
  const uint64_t now = EffectiveBudget(*device);
  if (now == before) return;
  ATP_LOG_INFO("device %d: budget %s by %s, was %s", device->ordinal, HumanBytes(now).text(), by,
               HumanBytes(before).text());
  g_share_version.fetch_add(1, std::memory_order_relaxed);
  WatchIfNear(*device);
}

void Take(Device* device, Part* part, uint64_t budget) {
  const uint64_t before = EffectiveBudget(*device);
  Set(device, &device->share, budget == protocol::kNoBudget ? 0 : budget, "atpd");
  part->before = before;  // where it is as before: long enough in force
}

// What neighbours without the shim leave of the card; never so little that nothing can run. False:
// that is not known.
bool LookAround(Device* device) {
  std::lock_guard lock(mutex);
  if (stopped || Settings().Disabled(kDisableNeighbours)) return false;
  Part& part = parts[device->ordinal];
  auto processes = ProcessesOnCard(device->ordinal);
  part.processes = processes ? std::move(*processes) : std::vector<protocol::CardProcess>();
  if (part.processes.empty()) return false;
  const uint64_t others = part.neighbours.Look(WithoutShim(part.processes));
  const uint64_t all = std::min(device->total, device->free_at_start + part.neighbours.at_start());
  constexpr uint64_t kLeastParts = 16;
  const uint64_t least =
      std::max(device->least.load(std::memory_order_relaxed), device->total / kLeastParts);
  const uint64_t left = std::max(all - std::min(all, others), std::min(least, all));
  Set(device, &device->beside, left, "what neighbours leave of the card");
  return true;
}

// False: nobody answers.
bool Ask(Device* device, bool waits, bool* has_room) {
  std::lock_guard lock(mutex);
  if (stopped) return false;
  Part& part = parts[device->ordinal];
  const auto budget = AskForShare(ReportOn(*device, &part, waits));
  if (!budget) return false;
  *has_room = *budget != 0;
  // Nothing: it runs beside what the others have all the same, as if nobody shared the card out.
  if (*budget != 0) Take(device, &part, *budget);
  return true;
}

void AwaitRoom(Device* device) {
  const auto most = std::chrono::milliseconds(Settings().wait_ms);
  const auto start = std::chrono::steady_clock::now();
  bool has_room = false, said = false;
  while (Ask(device, /*waits=*/true, &has_room) && !has_room) {
    if (!said) {
      ATP_LOG_WARN("device %d: no room beside the other jobs on it: waiting (ATP_WAIT)",
                   device->ordinal);
    }
    said = true;
    if (std::chrono::steady_clock::now() - start > most) {
      ATP_LOG_WARN("device %d: still no room for it: going on all the same", device->ordinal);
      return;
    }
    std::this_thread::sleep_for(kWaitStep);
  }
}

void AskForEver(Device* device) {
  const bool has_daemon = !protocol::SocketPaths().empty();
  auto next = std::chrono::steady_clock::now();
  while (true) {
    const bool sees = LookAround(device);
    const auto now = std::chrono::steady_clock::now();
    if (has_daemon && now >= next) {
      bool has_room = false;
      next = now + (Ask(device, /*waits=*/false, &has_room) ? kAskEvery : kLookEvery);
    }
    {
      std::lock_guard lock(mutex);
      if (stopped || (!sees && !has_daemon)) return;
    }
    std::this_thread::sleep_until(sees ? now + kAskEvery : next);
  }
}

uint64_t VirtualNow() { return real().atpSimNow(); }

}  // namespace

void ShareStart(Device* device) {
  if (begun[device->ordinal].load(std::memory_order_relaxed)) return;
  begun[device->ordinal] = true;
  const bool has_daemon = !protocol::SocketPaths().empty();
  if (Settings().policy != Policy::kLearned) return;
  if (!has_daemon && Settings().Disabled(kDisableNeighbours)) return;
  {
    std::lock_guard lock(mutex);
    Part& part = parts[device->ordinal];
    if (std::exchange(part.started, true)) return;
    part.neighbours = NeighbourMemory(device->total);
  }
  if (has_daemon && Settings().wait_ms > 0) AwaitRoom(device);
  if (real().atpSimNow == nullptr || Settings().real_threads) {
    StartOwnThread("atp-share", [device] { AskForEver(device); });
    return;
  }
  const bool sees = LookAround(device);
  bool has_room = false;
  const bool answered = has_daemon && Ask(device, /*waits=*/false, &has_room);
  if (!answered) {
    std::lock_guard lock(mutex);
    daemon_silent = true;
  }
  if (!sees && !answered) return;
  // Launches are where it asks again; for neighbours alone those that are watched anyway, so that
  // looking changes nothing where there are none.
  g_share_by_turns.store(true, std::memory_order_relaxed);
  if (answered) g_watching.store(true, std::memory_order_relaxed);
}

void ShareAskInTurn(int ordinal) {
  Device* device = DeviceOf(ordinal);
  if (device == nullptr) return;
  const uint64_t now = VirtualNow();
  {
    std::lock_guard lock(mutex);
    Part& part = parts[ordinal];
    if (!part.started || now < part.asked_ns + kTurnNs) return;
    part.asked_ns = now;
  }
  LookAround(device);
  {
    std::lock_guard lock(mutex);
    if (daemon_silent) return;
  }
  const auto start = std::chrono::steady_clock::now();
  bool has_room = false;
  // One that hangs would hold the program up each time.
  constexpr auto kHangs = 500ms;
  const bool answered = Ask(device, /*waits=*/false, &has_room);
  std::lock_guard lock(mutex);
  daemon_silent = !answered && std::chrono::steady_clock::now() - start > kHangs;
}

void ShareStop() {
  std::lock_guard lock(mutex);
  stopped = true;
}

void ResetShareAfterFork() {
  new (&mutex) std::mutex;
  for (Part& part : parts) part = Part{};
  for (std::atomic<bool>& b : begun) b = false;
  g_share_by_turns = false;
  daemon_silent = false;
}

}  // namespace atp::shim
