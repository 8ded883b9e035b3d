// SPDX-License-Identifier: Apache-2.0
#include "shim/recorder.h"

#include <string.h>

#include <algorithm>

#include "shim/functions.h"

namespace atp::shim {
namespace {

uint64_t Mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ (hash >> 29);
}

size_t BytesOf(const LaunchArguments& arguments) {
  if (arguments.packed != nullptr) return arguments.packed_bytes;
  if (arguments.info == nullptr || arguments.parameters == nullptr) return 0;
  size_t end = 0;
  for (const Parameter& p : arguments.info->parameters) {
    end = std::max<size_t>(end, p.offset + p.bytes);
  }
  return end;
}

// Equal for launches of one kernel that differ in their pointers only. `addresses`: those that the
// launch was given, of our memory; sorted. `number`: of the launch, where its arguments are not
// known: it is like no other then.
uint64_t ShapeOf(const LaunchShape& shape, std::span<const char> arguments,
                 const std::vector<uint64_t>& addresses, uint64_t number) {
  uint64_t hash = 0x51ED270B;
  for (const uint32_t n : shape.grid) hash = Mix(hash, n);
  for (const uint32_t n : shape.block) hash = Mix(hash, n);
  if (arguments.empty()) return Mix(hash, number);
  for (size_t at = 0; at < arguments.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    memcpy(&word, &arguments[at], std::min(sizeof word, arguments.size() - at));
    const bool pointer = std::binary_search(addresses.begin(), addresses.end(), word);
    hash = Mix(hash, pointer ? 0 : word);
  }
  return hash;
}

// Its threads, and its parameters of 4 and 8 bytes that are no such addresses.
policy::LaunchShape ScalarsOf(const LaunchShape& shape, const FunctionInfo* info,
                              std::span<const char> arguments,
                              const std::vector<uint64_t>& addresses) {
  policy::LaunchShape scalars;
  scalars.threads = 1;
  for (const uint32_t n : shape.grid) scalars.threads *= n;
  for (const uint32_t n : shape.block) scalars.threads *= n;
  if (info == nullptr || arguments.empty()) return scalars;
  for (const Parameter& p : info->parameters) {
    if ((p.bytes != 4 && p.bytes != 8) || p.offset + p.bytes > arguments.size()) continue;
    uint64_t value = 0;
    memcpy(&value, &arguments[p.offset], p.bytes);
    const bool pointer =
        p.bytes == 8 && std::binary_search(addresses.begin(), addresses.end(), value);
    if (pointer || scalars.scalar_count == policy::LaunchShape::kScalars) continue;
    scalars.scalars[scalars.scalar_count++] = value;
  }
  return scalars;
}

// Touches stand in the order of the arguments: where the word with this address is, from `*from`
// on, which moves behind it.
uint32_t FindPointer(std::span<const char> arguments, uint64_t address, uint32_t* from) {
  for (uint32_t at = *from; at + sizeof address <= arguments.size(); at += sizeof address) {
    if (memcmp(&arguments[at], &address, sizeof address) != 0) continue;
    *from = at + sizeof address;
    return at;
  }
  return Recorder::Period::kNowhere;
}

}  // namespace

void Recorder::Record(const LaunchView& launch) {
  if (entries_ == nullptr) {
    entries_ = std::make_unique_for_overwrite<Entry[]>(kLaunches);
    touches_ = std::make_unique_for_overwrite<TouchEntry[]>(kTouches);
    arguments_ = std::make_unique_for_overwrite<char[]>(kArgumentBytes);
  }
  Entry& entry = entries_[launches_++ % kLaunches];
  entry.signature = launch.signature;
  entry.identity = launch.identity;
  entry.info = launch.arguments.info;
  entry.shape = launch.arguments.shape;
  entry.first_touch = touched_;
  entry.touch_count = static_cast<uint32_t>(launch.touch_count);
  uint64_t at = touched_;
  for (const Touch& t : std::span(launch.touches, launch.touch_count)) {
    touches_[at++ % kTouches] = {t.allocation->id, t.offset, t.bytes, t.reads, t.writes};
  }
  touched_ = at;
  RecordArguments(launch.arguments, &entry);
}

void Recorder::RecordArguments(const LaunchArguments& arguments, Entry* entry) {
  constexpr size_t kMost = 32764;  // what a launch can be given (CUDA programming guide)
  size_t bytes = BytesOf(arguments);
  if (bytes > kMost) bytes = 0;
  const uint64_t left = kArgumentBytes - argument_bytes_ % kArgumentBytes;
  if (bytes > left) argument_bytes_ += left;
  entry->first_argument = argument_bytes_;
  entry->argument_bytes = static_cast<uint32_t>(bytes);
  if (bytes == 0) return;
  char* to = &arguments_[argument_bytes_ % kArgumentBytes];
  argument_bytes_ += bytes;
  if (arguments.packed != nullptr) {
    memcpy(to, arguments.packed, bytes);
    return;
  }
  memset(to, 0, bytes);  // holes between parameters
  for (size_t i = 0; i < arguments.info->parameters.size(); ++i) {
    const Parameter& p = arguments.info->parameters[i];
    if (p.bytes == sizeof(uint64_t)) {  // most are pointers: no call for those
      memcpy(to + p.offset, arguments.parameters[i], sizeof(uint64_t));
    } else {
      memcpy(to + p.offset, arguments.parameters[i], p.bytes);
    }
  }
}

std::span<const char> Recorder::ArgumentsOf(const Entry& entry) const {
  const bool known =
      entry.argument_bytes > 0 && argument_bytes_ - entry.first_argument <= kArgumentBytes;
  if (!known) return {};
  return {&arguments_[entry.first_argument % kArgumentBytes], entry.argument_bytes};
}

void Recorder::AddArguments(uint64_t launch, uint32_t length, Period* period) const {
  const Entry& entry = entries_[launch % kLaunches];
  const auto add = [&](std::span<const char> bytes) {
    const auto at = static_cast<uint32_t>(period->argument_bytes.size());
    period->argument_bytes.insert(period->argument_bytes.end(), bytes.begin(), bytes.end());
    return at;
  };
  const std::span<const char> arguments = ArgumentsOf(entry);
  Period::Launched launched{entry.info, entry.shape, add(arguments),
                            static_cast<uint32_t>(arguments.size()), Period::kNowhere};
  if (launch >= length && launches_ - (launch - length) <= kLaunches) {
    const Entry& before = entries_[(launch - length) % kLaunches];
    const std::span<const char> earlier = ArgumentsOf(before);
    const bool same = before.info == entry.info && earlier.size() == arguments.size();
    if (same && !earlier.empty()) launched.first_earlier = add(earlier);
  }
  period->launched.push_back(launched);
}

void Recorder::Period::Add(Allocation* allocation) {
  // Advice that a write has ended twice already is not given a third time.
  constexpr uint8_t kGivenUp = 2;
  allocations.push_back(allocation);
  mapped.push_back(allocation->mapped_bytes);
  written_anyway.push_back(allocation->read_mostly_broken >= kGivenUp);
  seen.allocations.push_back(allocation->bytes);
}

Recorder::Period Recorder::Last(uint32_t length, const std::vector<double>& seconds,
                                const std::unordered_map<uint64_t, Allocation*>& live) const {
  Period period;
  if (length == 0 || length > launches_ || length > kLaunches) return period;
  const uint64_t begin = launches_ - length;
  if (touched_ - entries_[begin % kLaunches].first_touch > kTouches) return period;

  std::unordered_map<uint64_t, uint32_t> index;
  std::vector<uint64_t> addresses;
  for (uint32_t i = 0; i < length; ++i) {
    const Entry& entry = entries_[(begin + i) % kLaunches];
    period.signatures.push_back(entry.signature);
    policy::SeenLaunch launch;
    launch.kernel = entry.identity;
    launch.seconds = i < seconds.size() ? seconds[i] : 0;
    launch.first_touch = static_cast<uint32_t>(period.seen.touches.size());
    launch.touch_count = entry.touch_count;
    AddArguments(begin + i, length, &period);
    const std::span<const char> arguments = ArgumentsOf(entry);
    addresses.clear();
    uint32_t from = 0;
    for (uint32_t k = 0; k < entry.touch_count; ++k) {
      const TouchEntry& touch = touches_[(entry.first_touch + k) % kTouches];
      const auto alive = live.find(touch.allocation_id);
      if (alive == live.end()) return period;
      Allocation* a = alive->second;
      const auto [it, added] = index.try_emplace(touch.allocation_id, period.allocations.size());
      if (added) period.Add(a);
      period.seen.touches.push_back(
          {it->second, touch.offset, touch.bytes, touch.reads, touch.writes});
      const uint64_t address = a->address + touch.offset;
      period.pointer_at.push_back(FindPointer(arguments, address, &from));
      addresses.push_back(address);
    }
    std::sort(addresses.begin(), addresses.end());
    launch.shape = ShapeOf(entry.shape, arguments, addresses, begin + i);
    period.seen.launches.push_back(launch);
    period.seen.scalars.push_back(ScalarsOf(entry.shape, entry.info, arguments, addresses));
  }
  period.usable = true;
  return period;
}

Recorder::Beginning Recorder::BeginningOf(const std::vector<uint64_t>& signatures) const {
  const uint64_t length = signatures.size(),
                 oldest = launches_ - std::min<uint64_t>(launches_, kLaunches);
  const auto signature = [&](uint64_t i) { return entries_[i % kLaunches].signature; };
  const auto begins = [&](uint64_t at) {
    for (uint64_t i = 0; i < length; ++i) {
      if (signature(at + i) != signatures[i]) return false;
    }
    return true;
  };
  Beginning beginning;
  uint64_t at = oldest;
  while (at + length <= launches_ && !begins(at)) ++at;
  if (length == 0 || at + length > launches_) return beginning;
  // Part of a period may have run before the first whole one.
  for (uint64_t back = 1; at > oldest && back < length; ++back, --at) {
    if (signature(at - 1) != signatures[length - back]) break;
    beginning.rotation = static_cast<uint32_t>(length - back);
  }
  for (uint64_t i = 1; i <= beginning.before.size() && at >= oldest + i; ++i) {
    beginning.before[beginning.before.size() - i] = signature(at - i);
  }
  return beginning;
}

void AssumeDurations(double total, policy::Trace* trace) {
  constexpr double kLeast = 1e-6;
  double all = 0;
  for (policy::Launch& launch : trace->launches) {
    launch.seconds = 0;
    for (const auto* list : {&launch.reads, &launch.writes}) {
      for (const uint32_t t : *list) launch.seconds += static_cast<double>(trace->tensors[t].bytes);
    }
    all += launch.seconds;
  }
  for (policy::Launch& launch : trace->launches) {
    launch.seconds = std::max(kLeast, all > 0 ? launch.seconds / all * total : 0);
  }
}

}  // namespace atp::shim
