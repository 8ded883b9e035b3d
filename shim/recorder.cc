// SPDX-License-Identifier: Apache-2.0
#include "shim/recorder.h"

#include <string.h>

#include <algorithm>
#include <new>
#include <utility>

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
  const std::span<const Parameter> parameters = arguments.info->parameters;
  return parameters.empty() ? 0 : size_t{parameters.back().offset} + parameters.back().bytes;
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

// What is live, by address.
class Recorder::Places {
 public:
  explicit Places(const std::unordered_map<uint64_t, Allocation*>& live) : live_(live) {
    for (const auto& [id, allocation] : live) by_address_.push_back(allocation);
    std::sort(by_address_.begin(), by_address_.end(),
              [](const Allocation* a, const Allocation* b) { return a->address < b->address; });
  }
  Allocation* WithId(uint64_t id) const {
    const auto found = live_.find(id);
    return found == live_.end() ? nullptr : found->second;
  }
  Allocation* At(uint64_t address) const {
    const auto next =
        std::upper_bound(by_address_.begin(), by_address_.end(), address,
                         [](uint64_t at, const Allocation* a) { return at < a->address; });
    if (next == by_address_.begin()) return nullptr;
    Allocation* before = *std::prev(next);
    return address - before->address < before->mapped_bytes ? before : nullptr;
  }

 private:
  const std::unordered_map<uint64_t, Allocation*>& live_;
  std::vector<Allocation*> by_address_;
};

template <typename T>
Recorder::Row<T> Recorder::NewRow(size_t count) {
  Row<T> row(static_cast<T*>(calloc(count, sizeof(T))));
  if (row == nullptr) throw std::bad_alloc();
  return row;
}

void Recorder::Record(const LaunchView& launch) {
  if (entries_ == nullptr) {
    entries_ = NewRow<Entry>(kLaunches);
    touches_ = NewRow<TouchEntry>(kTouches);
    arguments_ = NewRow<char>(kArgumentBytes);
  }
  Entry& entry = entries_[launches_++ % kLaunches];
  entry.signature = launch.signature;
  entry.identity = launch.identity;
  entry.info = launch.arguments.info;
  entry.shape = launch.arguments.shape;
  entry.first_touch = touched_;
  entry.touch_count = static_cast<uint32_t>(launch.touch_count);
  entry.newest = 0;
  entry.packed = launch.arguments.packed != nullptr;
  RecordArguments(launch.arguments, &entry);
  if (launch.arguments.tell_touches && entry.info != nullptr && entry.argument_bytes > 0) {
    uint64_t newest = 0;
    ForEachUse(launch, [&](const Allocation* a, bool) { newest = std::max(newest, a->id); });
    entry.newest = newest;
    return;
  }
  uint64_t at = touched_;
  for (const Touch& t : std::span(launch.touches, launch.touch_count)) {
    touches_[at++ % kTouches] = {t.allocation->id, t.offset, t.bytes, t.reads, t.writes};
  }
  touched_ = at;
}

void Recorder::Repeat(uint32_t length) {
  Entry entry = entries_[(launches_ - length) % kLaunches];
  if (entry.newest == 0 && touched_ - entry.first_touch <= kTouches) {
    const uint64_t from = std::exchange(entry.first_touch, touched_);
    for (uint32_t k = 0; k < entry.touch_count; ++k) {
      touches_[touched_++ % kTouches] = touches_[(from + k) % kTouches];
    }
  } else {  // found in its arguments again, as long as those are known
    if (entry.newest == 0) entry.argument_bytes = 0;
    entry.newest = std::max<uint64_t>(entry.newest, 1);
    entry.first_touch = touched_;
  }
  entries_[launches_++ % kLaunches] = entry;
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
  const std::span<const Parameter> parameters = arguments.info->parameters;
  if (arguments.info->only_words) {
    void* const* from = arguments.parameters;
    for (const char* end = to + bytes; to != end; to += sizeof(uint64_t)) {
      memcpy(to, *from++, sizeof(uint64_t));
    }
    return;
  }
  size_t end = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Parameter p = parameters[i];
    if (p.offset > end) memset(to + end, 0, p.offset - end);  // a hole
    end = size_t{p.offset} + p.bytes;
    if (end > bytes) break;             // not in the order of the buffer: the driver never says so
    if (p.bytes == sizeof(uint64_t)) {  // most are pointers: no call for those
      memcpy(to + p.offset, arguments.parameters[i], sizeof(uint64_t));
    } else {
      memcpy(to + p.offset, arguments.parameters[i], p.bytes);
    }
  }
}

bool Recorder::TouchesOf(const Entry& entry, const Places& places,
                         std::vector<Found>* found) const {
  found->clear();
  const std::span<const char> arguments = ArgumentsOf(entry);
  if (entry.newest != 0) {
    if (arguments.empty()) return false;
    VisitBufferWords(
        *entry.info, arguments, entry.packed, [&](size_t at, uint64_t word, WordAccess access) {
          if (!access.reads && !access.writes) return;
          Allocation* a = places.At(word);
          if (a == nullptr || a->id > entry.newest) return;
          found->push_back(
              {a, word - a->address, 0, access.reads, access.writes, static_cast<uint32_t>(at)});
        });
    return found->size() == entry.touch_count;
  }
  uint32_t from = 0;
  for (uint32_t k = 0; k < entry.touch_count; ++k) {
    const TouchEntry& touch = touches_[(entry.first_touch + k) % kTouches];
    Allocation* a = places.WithId(touch.allocation_id);
    if (a == nullptr) return false;
    found->push_back({a, touch.offset, touch.bytes, touch.reads, touch.writes,
                      FindPointer(arguments, a->address + touch.offset, &from)});
  }
  return true;
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

  const Places places(live);
  std::unordered_map<uint64_t, uint32_t> index;
  std::vector<uint64_t> addresses;
  std::vector<Found> found;
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
    if (!TouchesOf(entry, places, &found)) return period;
    addresses.clear();
    for (const Found& touch : found) {
      const auto [it, added] = index.try_emplace(touch.allocation->id, period.allocations.size());
      if (added) period.Add(touch.allocation);
      period.seen.touches.push_back(
          {it->second, touch.offset, touch.bytes, touch.reads, touch.writes});
      period.pointer_at.push_back(touch.pointer_at);
      addresses.push_back(touch.allocation->address + touch.offset);
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
