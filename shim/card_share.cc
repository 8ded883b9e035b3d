// SPDX-License-Identifier: Apache-2.0
#include "shim/card_share.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <new>
#include <thread>

#include "protocol/message.h"
#include "protocol/share_report.h"
#include "shim/daemon_link.h"
#include "shim/managed.h"
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
};
std::atomic<bool> begun[kMaxDevices];  // each allocation asks

std::mutex mutex;  // of all below, and held while the driver is asked
Part parts[kMaxDevices];
bool stopped = false;

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
  return report;
}

void Take(Device* device, Part* part, uint64_t budget) {
  const uint64_t share = budget == protocol::kNoBudget ? 0 : budget;
  const uint64_t before = EffectiveBudget(*device);
  if (device->share.exchange(share, std::memory_order_relaxed) == share) {
    part->before = before;  // long enough in force
    return;
  }
  part->before = before;
  const uint64_t now = EffectiveBudget(*device);
  if (now == before) return;
  ATP_LOG_INFO("device %d: budget %s by atpd, was %s", device->ordinal, HumanBytes(now).text(),
               HumanBytes(before).text());
  g_share_version.fetch_add(1, std::memory_order_relaxed);
  WatchIfNear(*device);
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
  while (true) {
    bool has_room = false;
    const bool answered = Ask(device, /*waits=*/false, &has_room);
    {
      std::lock_guard lock(mutex);
      if (stopped) return;
    }
    std::this_thread::sleep_for(answered ? std::chrono::seconds(kAskEvery) : kLookEvery);
  }
}

uint64_t VirtualNow() { return real().atpSimNow(); }

}  // namespace

void ShareStart(Device* device) {
  if (begun[device->ordinal].load(std::memory_order_relaxed)) return;
  begun[device->ordinal] = true;
  if (Settings().policy != Policy::kLearned || protocol::SocketPaths().empty()) return;
  {
    std::lock_guard lock(mutex);
    if (std::exchange(parts[device->ordinal].started, true)) return;
  }
  if (Settings().wait_ms > 0) AwaitRoom(device);
  if (real().atpSimNow == nullptr || Settings().real_threads) {
    StartOwnThread("atp-share", [device] { AskForEver(device); });
    return;
  }
  bool has_room = false;
  if (!Ask(device, /*waits=*/false, &has_room)) return;
  // Launches are where it asks again.
  g_share_by_turns.store(true, std::memory_order_relaxed);
  g_watching.store(true, std::memory_order_relaxed);
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
  const auto start = std::chrono::steady_clock::now();
  bool has_room = false;
  // One that hangs would hold the program up each time.
  constexpr auto kHangs = 500ms;
  if (!Ask(device, /*waits=*/false, &has_room) &&
      std::chrono::steady_clock::now() - start > kHangs) {
    g_share_by_turns.store(false, std::memory_order_relaxed);
  }
}

void ShareStop() {
  std::lock_guard lock(mutex);
  stopped = true;
}

void ResetShareAfterFork() {
  new (&mutex) std::mutex;
  for (Part& part : parts) part = {};
  for (std::atomic<bool>& b : begun) b = false;
  g_share_by_turns = false;
}

}  // namespace atp::shim
