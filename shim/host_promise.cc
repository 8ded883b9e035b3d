// SPDX-License-Identifier: Apache-2.0
#include "shim/host_promise.h"

#include <stdio.h>
#include <time.h>

#include <algorithm>

#include "shim/host_ledger.h"
#include "shim/host_memory.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/tracker.h"

namespace atp::shim {
namespace {

struct Refusal {
  bool given = false;
  bool by_card = false;  // plain memory, by the driver; otherwise host memory, by the ledger
  uint64_t asked = 0, already = 0;  // of this process, on the device
  uint64_t others = 0;              // what the machine promises without it
  int device = 0;
  uint64_t budget = 0;
  HostLimit limit;
  char holders[256] = "";
};
thread_local Refusal refusal;

const char* LedgerPath() {
  static char usual[64];
  const Configuration& settings = Settings();
  if (settings.no_ledger) return nullptr;
  if (settings.ledger_file[0] != '\0') return settings.ledger_file;
  const bool simulated = real().atpSimNow != nullptr;
  return !simulated && UsualLedger(usual, sizeof usual) ? usual : nullptr;
}

HostLedger& Ledger() {  // never destroyed: hooks may run until the very end
  static HostLedger* ledger = new HostLedger(LedgerPath());
  return *ledger;
}
std::atomic<bool> ledger_made{false};
std::atomic<uint64_t> most{UINT64_MAX};  // MostPromised, as of the last look

// So much is taken at once, so that few allocations ask the ledger, however many there are.
uint64_t ChunkOf(const Device& device, uint64_t managed) {
  constexpr uint64_t kMost = 1u << 30;
  return std::clamp(RoundUpToGranule(std::max(device.budget, managed) / 32), kGranule, kMost);
}

uint64_t Add(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

// The largest holders, for people.
void List(std::span<const LedgerEntry* const> living, char* text, size_t size) {
  struct Held {
    const LedgerEntry* entry;
    uint64_t bytes;
  };
  std::vector<Held> held;
  for (const LedgerEntry* entry : living) {
    uint64_t bytes = 0;
    for (const LedgerDevice& device : entry->devices) bytes += device.managed;
    if (bytes > 0) held.push_back({entry, bytes});
  }
  std::sort(held.begin(), held.end(),
            [](const Held& a, const Held& b) { return a.bytes > b.bytes; });
  constexpr size_t kShown = 4;
  size_t used = 0;
  for (size_t i = 0; i < std::min(held.size(), kShown) && used < size; ++i) {
    const int more =
        snprintf(text + used, size - used, "%s%s by %.15s (%d)", i == 0 ? "" : ", ",
                 HumanBytes(held[i].bytes).text(), held[i].entry->name, held[i].entry->pid);
    used += more > 0 ? static_cast<size_t>(more) : 0;
  }
  if (held.size() > kShown && used < size) {
    snprintf(text + used, size - used, " and %zu more", held.size() - kShown);
  }
}

struct Wish {
  Device* device;
  uint64_t managed;  // at least
  uint64_t chunk;    // and up to so much more
  uint64_t room;
};

// Under the ledger's lock. True: granted, and `own` says so.
bool Grant(const Wish& wish, LedgerEntry* own, std::span<const LedgerEntry* const> living,
           uint64_t* available) {
  LedgerDevice& held = own->devices[wish.device->ordinal];
  const LedgerDevice before = held;
  if (wish.managed <= before.managed && wish.room >= before.room) return true;  // by another thread
  const uint64_t need_before = HostNeed(living);
  const auto need_with = [&](uint64_t managed) {
    held = {wish.device->card, managed, wish.room};
    return HostNeed(living);
  };
  const uint64_t rounded = (wish.managed + wish.chunk - 1) / wish.chunk * wish.chunk;
  if (need_with(rounded) <= need_before) return true;
  // What is there now, and what we may have taken ourselves; never more than there was at first.
  const uint64_t now = AvailableHostMemory();
  *available = need_before == 0 ? now : std::max(*available, now);
  const HostLimit limit = HostLimitOf(std::min(*available, Add(now, need_before)));
  refusal.limit = limit;
  refusal.others = need_with(0);
  most = limit.bytes - std::min(limit.bytes, refusal.others);
  if (need_with(rounded) <= limit.bytes || need_with(wish.managed) <= limit.bytes) return true;
  held = before;
  List(living, refusal.holders, sizeof refusal.holders);
  return false;
}

bool Ask(const Wish& wish) {
  bool granted = false;
  ledger_made = true;
  Ledger().With(
      [&](LedgerEntry* own, std::span<const LedgerEntry* const> living, uint64_t* available) {
        granted = Grant(wish, own, living, available);
        wish.device->promised.store(own->devices[wish.device->ordinal].managed,
                                    std::memory_order_relaxed);
      });
  if (granted) return true;
  refusal.given = true;
  refusal.by_card = false;
  refusal.device = wish.device->ordinal;
  refusal.budget = wish.device->budget;
  return false;
}

uint64_t NowMs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

}  // namespace

bool RaisePromise(Device* device, uint64_t already, uint64_t bytes) {
  if (Ask({device, already + bytes, ChunkOf(*device, already), ManagedRoom(*device)})) return true;
  refusal.already = already;
  refusal.asked = bytes;
  return false;
}

bool PromiseBeside(Device* device, uint64_t native) {
  const uint64_t room = ManagedRoom(*device);
  const uint64_t managed = device->managed.load(std::memory_order_relaxed);
  if (managed <= room - std::min(room, native) || managed > room) return true;
  const uint64_t held = device->promised.load(std::memory_order_relaxed);
  if (Ask({device, std::max(managed, held), kGranule, room - std::min(room, native)})) return true;
  refusal.asked = native;
  refusal.already = managed;
  return false;
}

void LowerPromise(Device* device, uint64_t managed) {
  const uint64_t chunk = ChunkOf(*device, managed);
  const uint64_t rounded = (managed + chunk - 1) / chunk * chunk;
  // A chunk more is kept: programs free and ask again.
  if (device->promised.load(std::memory_order_relaxed) <= rounded + chunk) return;
  Ledger().With([&](LedgerEntry* own, std::span<const LedgerEntry* const>, uint64_t*) {
    LedgerDevice& held = own->devices[device->ordinal];
    held.room = ManagedRoom(*device);
    // Others may have asked for more meanwhile.
    const uint64_t now = device->managed.load(std::memory_order_relaxed);
    held.managed = std::min(held.managed, (std::max(now, managed) + chunk - 1) / chunk * chunk);
    device->promised.store(held.managed, std::memory_order_relaxed);
  });
}

uint64_t MostPromised() { return most.load(std::memory_order_relaxed); }

bool RefusedByCard(const Device& device, uint64_t bytes) {
  // The driver takes some for itself: contexts, page tables.
  const uint64_t most = device.total - device.total / 16;
  const uint64_t own = device.native.load(std::memory_order_relaxed) + bytes;
  if (Settings().wait_ms == 0 || own > most) return false;
  refusal.given = refusal.by_card = true;
  refusal.device = device.ordinal;
  refusal.asked = bytes;
  refusal.others = most - own + 1;
  return true;
}

void SayRefused() {
  const Refusal& r = refusal;
  if (r.by_card) {
    ATP_LOG_ERROR("device %d: %s of plain memory asked, and others hold it still: refused",
                  r.device, HumanBytes(r.asked).text());
    return;
  }
  char limit[128];
  if (r.limit.asked_for) {
    snprintf(limit, sizeof limit, "%s, as ATP_HOST_BUDGET says", HumanBytes(r.limit.bytes).text());
  } else {
    snprintf(limit, sizeof limit, "%s, of %s that the host has for it",
             HumanBytes(r.limit.bytes).text(), HumanBytes(r.limit.available).text());
  }
  ATP_LOG_ERROR(
      "out of memory: %s asked, %s already promised; what exceeds device %d's budget of %s must "
      "fit the host's share: %s. Promised on this machine: %s. Remedy: use less, end others, free "
      "host memory, or raise ATP_HOST_BUDGET if the machine can hold it",
      HumanBytes(r.asked).text(), HumanBytes(r.already).text(), r.device,
      HumanBytes(r.budget).text(), limit, r.holders[0] != '\0' ? r.holders : "nothing");
}

bool WasRefused() { return refusal.given; }
void ForgetRefusal() { refusal.given = false; }

Patience::Patience() : until_ms_(NowMs() + Settings().wait_ms) {}

bool Patience::More() {
  constexpr timespec kPause = {0, 20'000'000};
  if (Settings().wait_ms == 0 || refusal.others == 0 || NowMs() >= until_ms_) return false;
  if (!waited_ && refusal.by_card) {
    ATP_LOG_WARN("device %d: others hold the %s of plain memory asked: waiting for it (ATP_WAIT)",
                 refusal.device, HumanBytes(refusal.asked).text());
  } else if (!waited_) {
    ATP_LOG_WARN("%s of host memory are promised to others: waiting for it (ATP_WAIT)",
                 HumanBytes(refusal.others).text());
  }
  waited_ = true;
  nanosleep(&kPause, nullptr);
  return true;
}

void ResetPromisesAfterFork() {
  if (ledger_made.exchange(false)) Ledger().AfterForkInChild();
}

}  // namespace atp::shim
