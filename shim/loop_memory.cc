// SPDX-License-Identifier: Apache-2.0
#include "shim/loop_memory.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>
#include <utility>

#include "shim/code_identity.h"
#include "shim/device.h"
#include "shim/hooks.h"
#include "shim/run_record.h"
#include "shim/tracker.h"

namespace atp::shim {
namespace {

// An answer takes a daemon far less. Of real time, and only where the program's clock stands still.
constexpr std::chrono::seconds kAwaitAnswer{5};
constexpr size_t kMostAllocations = 4096;  // of a fingerprint
constexpr uint32_t kMostLaunches = Recorder::kLaunches / 2;
constexpr size_t kMostPhases = 12;  // remembered ones that are tried

std::vector<uint64_t> SizesByAge(const LiveAllocations& live) {
  const std::map<uint64_t, Allocation*> ordered(live.begin(), live.end());
  std::vector<uint64_t> sizes;
  for (const auto& [id, allocation] : ordered) {
    if (sizes.size() == kMostAllocations) break;
    sizes.push_back(allocation->mapped_bytes);
  }
  return sizes;
}

// Signatures are made of the hooks' numbers too, which other versions of the shim count otherwise.
std::string NameOf(const Device& device) {
  char name[160];
  snprintf(name, sizeof name, "%s, hooks %zu", device.name, kHookCount);
  return name;
}

// What no device does in a second is a damaged number.
double Plausible(double value, double least, double most) {
  return value >= least && value <= most ? value : 0;
}

policy::LinkRates LinkOf(const protocol::Learned& learned) {
  const auto rate = [](double value) { return Plausible(value, 1e6, 1e13); };
  policy::LinkRates link;
  link.h2d = rate(learned.h2d);
  link.d2h = rate(learned.d2h);
  if (link.h2d == 0 || link.d2h == 0) return {};
  link.duplex_h2d = rate(learned.duplex_h2d);
  link.duplex_d2h = rate(learned.duplex_d2h);
  return link;
}

// Where sizes differ it is the same program with other data: what a launch takes grows with its
// memory.
double TimeOf(const protocol::LearnedLaunch& launch, uint64_t bytes_now, uint64_t bytes_then) {
  constexpr double kLongest = 3600;
  const double scale = bytes_then > 0 && bytes_now > 0
                           ? static_cast<double>(bytes_now) / static_cast<double>(bytes_then)
                           : 1;
  return Plausible(launch.seconds * scale, 0, kLongest);
}

uint64_t KeyOf(const PhaseState& phase) { return uint64_t{phase.phase} << 32 | phase.length; }

bool SameLaunches(const protocol::LearnedPhase& a, const protocol::LearnedPhase& b) {
  return std::equal(a.launches.begin(), a.launches.end(), b.launches.begin(), b.launches.end(),
                    [](const auto& x, const auto& y) { return x.signature == y.signature; });
}

std::vector<uint32_t> Once(std::vector<uint32_t> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

std::vector<uint32_t> Touched(const protocol::LearnedLaunch& launch) {
  std::vector<uint32_t> all = launch.reads;
  all.insert(all.end(), launch.writes.begin(), launch.writes.end());
  return Once(std::move(all));
}

// The tensor in an allocation of other size: the same share of it.
policy::SeenTouch Part(const protocol::LearnedTensor& tensor, uint32_t allocation, uint64_t bytes) {
  policy::SeenTouch part;
  part.allocation = allocation;
  const auto scaled = [&](uint64_t at) {
    if (bytes == tensor.bytes || at == 0) return at;
    const double share = static_cast<double>(at) / static_cast<double>(tensor.bytes);
    return at == tensor.bytes ? bytes : static_cast<uint64_t>(static_cast<double>(bytes) * share);
  };
  part.offset = std::min(scaled(tensor.offset), bytes - 1);
  const uint64_t end = std::max(scaled(tensor.offset + tensor.length), part.offset + 1);
  part.bytes = std::min(end, bytes) - part.offset;
  return part;
}

// Launches are told from where the program first began to follow them.
protocol::LearnedPhase LearnedFrom(const PhaseState& phase, uint64_t capacity) {
  const Schedule& schedule = *phase.schedule;
  const auto length = static_cast<uint32_t>(schedule.signatures.size());
  protocol::LearnedPhase out;
  for (const Placed& tensor : schedule.tensors) {
    out.tensors.push_back(
        {tensor.allocation->mapped_bytes, tensor.offset, tensor.bytes, tensor.allocation->slot});
  }
  for (uint32_t i = 0; i < length; ++i) {
    const uint32_t at = (phase.beginning.rotation + i) % length;
    const policy::Launch& launch = schedule.trace->launches[at];
    out.launches.push_back({schedule.signatures[at], schedule.identities[at],
                            at < phase.seconds.size() ? phase.seconds[at] : 0, launch.reads,
                            launch.writes});
  }
  out.before.assign(phase.beginning.before.begin(), phase.beginning.before.end());
  out.capacity_bytes = capacity;
  out.best_seconds = phase.best_seconds;
  out.plain_seconds = phase.plain_seconds;
  out.bound_seconds = schedule.bound_seconds;
  out.periods = phase.planned_periods;
  return out;
}

}  // namespace

void LoopMemory::Ask(int device, uint64_t capacity, const LiveAllocations& live, bool await) {
  const Device* facts = DeviceOf(device);
  if (facts == nullptr) return;
  capacity_ = capacity;
  device_ = device;
  fingerprint_ = {NameOf(*facts), facts->total, capacity, LoadedCode(), SizesByAge(live)};
  question_.Ask(fingerprint_);
  if (await) question_.Await(kAwaitAnswer);
}

void LoopMemory::TakeAnswer() {
  std::vector<protocol::Learned> answer;
  if (!question_.Take(&answer)) return;
  for (protocol::Learned& learned : answer) {
    if (link_.h2d == 0) link_ = LinkOf(learned);
    if (learned.fingerprint == fingerprint_) tuning_.Take(learned);
    for (protocol::LearnedPhase& phase : learned.phases) {
      if (phases_.size() == kMostPhases || phase.launches.size() > kMostLaunches) continue;
      std::vector<uint64_t> identities;
      for (const auto& launch : phase.launches) identities.push_back(launch.identity);
      shapes_.Add(std::move(identities));
      phases_.push_back(std::move(phase));
      recalled_.push_back(0);
    }
  }
  changed_ = !phases_.empty();
}

// What fits exactly comes first; of what is the same otherwise, only one.
void LoopMemory::MakeOffers(const LiveAllocations& live) {
  std::unordered_map<uint32_t, uint64_t> sizes;
  for (const auto& [id, allocation] : live) sizes[allocation->slot] = allocation->mapped_bytes;
  const auto misfit = [&](uint32_t index) {
    uint64_t bytes = 0;
    for (const protocol::LearnedTensor& tensor : phases_[index].tensors) {
      const uint64_t is = sizes[tensor.slot];
      bytes += std::max(is, tensor.bytes) - std::min(is, tensor.bytes);
    }
    return bytes;
  };
  std::vector<uint32_t> order(phases_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return misfit(a) < misfit(b); });
  offers_.clear();
  for (const uint32_t index : order) {
    const bool there = std::any_of(offers_.begin(), offers_.end(), [&](uint32_t better) {
      return SameLaunches(phases_[index], phases_[better]);
    });
    if (!there) offers_.push_back(index);
  }
  std::reverse(offers_.begin(), offers_.end());
}

std::optional<LoopMemory::Recalled> LoopMemory::Next(const LiveAllocations& live) {
  if (std::exchange(changed_, false)) MakeOffers(live);
  while (!offers_.empty()) {
    const uint32_t index = offers_.back();
    offers_.pop_back();
    // A program that frees what a phase touches again and again is not planned again and again.
    constexpr uint32_t kMostRecalls = 8;
    if (recalled_[index] == kMostRecalls) continue;
    auto recalled = Resolve(index, live);
    if (!recalled) continue;
    ++recalled_[index];
    return recalled;
  }
  return std::nullopt;
}

// Allocations are known by their slots: the same in every run that allocates in the same order.
std::optional<LoopMemory::Recalled> LoopMemory::Resolve(uint32_t index,
                                                        const LiveAllocations& live) const {
  const protocol::LearnedPhase& learned = phases_[index];
  std::unordered_map<uint32_t, Allocation*> by_slot;
  for (const auto& [id, allocation] : live) by_slot[allocation->slot] = allocation;
  Recalled recalled;
  recalled.phase = kFirstPhase + index;
  Recorder::Period& period = recalled.period;
  std::unordered_map<uint32_t, uint32_t> allocation_of;  // slot -> index in the period
  std::vector<policy::SeenTouch> parts;                  // of the tensors
  bool same_sizes = true;
  for (const protocol::LearnedTensor& tensor : learned.tensors) {
    const auto found = by_slot.find(tensor.slot);
    if (found == by_slot.end()) return std::nullopt;
    const uint64_t bytes = found->second->mapped_bytes;
    const auto [at, added] = allocation_of.try_emplace(tensor.slot, period.allocations.size());
    if (added) period.Add(found->second);
    same_sizes &= bytes == tensor.bytes;
    parts.push_back(Part(tensor, at->second, bytes));
  }
  std::vector<bool> used(parts.size());
  bool timed = true;
  for (const protocol::LearnedLaunch& from : learned.launches) {
    policy::SeenLaunch launch;
    launch.kernel = from.identity;
    launch.shape = period.seen.launches.size();
    launch.first_touch = static_cast<uint32_t>(period.seen.touches.size());
    uint64_t now = 0, then = 0;
    for (const bool writes : {false, true}) {
      for (const uint32_t t : Once(writes ? from.writes : from.reads)) {
        used[t] = true;
        parts[t].reads = !writes;
        parts[t].writes = writes;
        period.seen.touches.push_back(parts[t]);
        now += parts[t].bytes;
        then += learned.tensors[t].length;
      }
    }
    launch.touch_count = static_cast<uint32_t>(period.seen.touches.size()) - launch.first_touch;
    launch.seconds = TimeOf(from, now, then);
    timed &= launch.seconds > 0;
    period.seen.launches.push_back(launch);
    period.signatures.push_back(from.signature);
    recalled.seconds.push_back(launch.seconds);
  }
  if (std::find(used.begin(), used.end(), false) != used.end()) return std::nullopt;
  if (!timed) recalled.seconds.clear();
  if (same_sizes && learned.capacity_bytes == capacity_) {
    recalled.plain_seconds = Plausible(learned.plain_seconds, 0, 1e6);
  }
  recalled.before = learned.before;
  period.usable = true;
  return recalled;
}

std::vector<double> LoopMemory::SecondsOf(uint32_t index, const Recorder::Period& period) const {
  const std::vector<protocol::LearnedLaunch>& launches = phases_[index].launches;
  std::vector<double> seconds;
  const std::vector<policy::Bytes> reaches = policy::PredictReaches(period.seen);
  for (size_t i = 0; i < launches.size(); ++i) {
    uint64_t then = 0, now = 0;
    for (const uint32_t t : Touched(launches[i])) then += phases_[index].tensors[t].length;
    const policy::SeenLaunch& launch = period.seen.launches[i];
    for (uint32_t t = launch.first_touch; t < launch.first_touch + launch.touch_count; ++t) {
      now += RoundUpToGranule(reaches[t]);
    }
    seconds.push_back(TimeOf(launches[i], now, then));
    if (seconds.back() == 0) return {};
  }
  return seconds;
}

bool LoopMemory::IsTimeToTell(uint64_t planned_periods) {
  if (planned_periods < tell_at_) return false;
  tell_at_ *= 2;
  return true;
}

void LoopMemory::Freeing(const PhaseStates& phases, const Allocation* allocation) {
  changed_ = true;
  for (const PhaseState& phase : phases.all()) {
    if (phase.schedule == nullptr || phase.planned_periods == 0) continue;
    const auto& tensors = phase.schedule->tensors;
    const bool uses = std::any_of(tensors.begin(), tensors.end(),
                                  [&](const Placed& t) { return t.allocation == allocation; });
    if (!uses) continue;
    const auto known = kept_.find(KeyOf(phase));
    if (known == kept_.end() && kept_.size() == PhaseStates::kMost) continue;
    if (known != kept_.end() && known->second.periods >= phase.planned_periods) continue;
    kept_[KeyOf(phase)] = LearnedFrom(phase, capacity_);
  }
}

void LoopMemory::Tell(const PhaseStates& phases, const policy::LinkRates& link, bool at_once) {
  if (fingerprint_.device.empty()) return;
  protocol::Learned learned;
  learned.fingerprint = fingerprint_;
  learned.command = DescribeRun().command;
  learned.h2d = link.h2d;
  learned.d2h = link.d2h;
  learned.duplex_h2d = link.duplex_h2d;
  learned.duplex_d2h = link.duplex_d2h;
  auto gone = kept_;
  for (const PhaseState& phase : phases.all()) {
    if (phase.schedule == nullptr || phase.planned_periods == 0) continue;
    learned.phases.push_back(LearnedFrom(phase, capacity_));
    gone.erase(KeyOf(phase));
  }
  for (auto& [key, phase] : gone) learned.phases.push_back(std::move(phase));
  tuning_.Tell(&learned);
  learned.budget_bytes -= std::min(learned.budget_bytes, NativeBytes(device_));
  if (!learned.phases.empty()) TellDaemon(std::move(learned), at_once);
}

}  // namespace atp::shim
