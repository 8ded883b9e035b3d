// SPDX-License-Identifier: Apache-2.0
#include "shim/kernel_reach.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "ptx/reach.h"
#include "shim/functions.h"
#include "shim/kernel_images.h"
#include "shim/native_sizes.h"
#include "shim/parsed_texts.h"

namespace atp::shim {
namespace {

using Text = std::shared_ptr<const std::string>;
struct Codes {
  size_t texts = 0;                                         // that have the kernel
  std::vector<std::shared_ptr<const ptx::ReachCode>> list;  // empty: one cannot be followed
};

// Each kernel is translated when it is first asked for.
class Library {
 public:
  // One for each text that has the kernel.
  const Codes& Of(const char* kernel) {
    const std::vector<Text> texts = TextsWith(kernel);
    Codes& codes = codes_[kernel];
    if (codes.texts == texts.size()) return codes;
    codes = {texts.size(), {}};
    for (const Text& text : texts) {
      const ptx::ParsedModule& module = ParsedText(text);
      const auto found = module.function_by_name.find(kernel);
      std::shared_ptr<const ptx::ReachCode> code;
      if (found != module.function_by_name.end()) {
        code = ptx::ReachCode::Make(module, *module.functions[found->second]);
      }
      if (code == nullptr) {
        codes.list.clear();
        break;
      }
      codes.list.push_back(std::move(code));
    }
    return codes;
  }

 private:
  std::unordered_map<std::string, Codes> codes_;
};

// A launch as it was, or as it will be.
struct LaunchedAs {
  const FunctionInfo* info;
  LaunchShape shape;
  std::vector<char> arguments;
  std::vector<uint32_t> pointers;  // where they lie in `arguments`
};

// What launches reached; those that differ in their pointers only reach equally far.
class Reaches {
 public:
  // One for each pointer; empty: not known.
  const std::vector<ptx::Reach>& Of(const LaunchedAs& launch) {
    constexpr size_t kMost = 4096;
    const Codes& codes = library_.Of(launch.info->name);
    std::string key = KeyOf(launch, codes);
    if (known_.size() >= kMost && known_.count(key) == 0) known_.clear();
    const auto [at, added] = known_.try_emplace(std::move(key));
    if (added) {
      at->second = Find(launch, codes);
      ++found_;
    }
    return at->second;
  }
  size_t found() const { return found_; }

 private:
  static std::string KeyOf(const LaunchedAs& launch, const Codes& codes) {
    std::string key(launch.info->name);
    key.append(1, '\0').append(std::to_string(codes.texts)).append(1, '\0');
    key.append(reinterpret_cast<const char*>(&launch.shape), sizeof launch.shape);
    const size_t first = key.size();
    key.append(launch.arguments.data(), launch.arguments.size());
    for (const uint32_t at : launch.pointers) key.replace(first + at, 8, 8, '\0');
    for (const uint32_t at : launch.pointers) {
      key.append(reinterpret_cast<const char*>(&at), sizeof at);
    }
    return key;
  }

  // What any of the kernels of that name reaches.
  static std::vector<ptx::Reach> Find(const LaunchedAs& launch, const Codes& codes) {
    constexpr uint64_t kSteps = 4u << 20;  // some ten milliseconds, where threads run long
    ptx::Geometry geometry;
    std::copy_n(launch.shape.grid, 3, geometry.grid);
    std::copy_n(launch.shape.block, 3, geometry.block);
    std::vector<ptx::Reach> all;
    for (const auto& code : codes.list) {
      const std::vector<ptx::Reach> one =
          code->Run(geometry, launch.arguments, launch.pointers, kSteps);
      if (one.empty()) return {};
      if (all.empty()) {
        all = one;
        continue;
      }
      for (size_t k = 0; k < all.size(); ++k) {
        all[k].known &= one[k].known;
        all[k].begin = std::min(all[k].begin, one[k].begin);
        all[k].end = std::max(all[k].end, one[k].end);
      }
    }
    return all;
  }

  Library library_;
  std::unordered_map<std::string, std::vector<ptx::Reach>> known_;
  size_t found_ = 0;  // by running code
};

template <typename T>
T WordAt(std::span<const char> bytes, size_t at) {
  T word = 0;
  std::memcpy(&word, &bytes[at], sizeof word);
  return word;
}

// The arguments after `periods` more, when each word goes on changing as it did in the last one.
// False: none changes.
bool GoOn(std::span<const char> earlier, unsigned periods, LaunchedAs* launch) {
  // Larger steps are no counters: seeds, hashes, numbers in floating point.
  constexpr int64_t kLargest = 1 << 24;
  bool changes = false;
  std::vector<char>& now = launch->arguments;
  const auto step = [&]<typename T>(size_t at, T) {
    const T delta = WordAt<T>(now, at) - WordAt<T>(earlier, at);
    if (delta == 0 || delta > kLargest || delta < -kLargest) return;
    const T next = WordAt<T>(now, at) + static_cast<T>(periods) * delta;
    std::memcpy(&now[at], &next, sizeof next);
    changes = true;
  };
  for (size_t at = 0; at + 4 <= now.size(); at += 4) {
    const auto pointer = std::find_if(launch->pointers.begin(), launch->pointers.end(),
                                      [&](uint32_t p) { return p == at || p + 4 == at; });
    if (pointer == launch->pointers.end()) {
      step(at, int32_t{});
    } else if (*pointer == at) {
      step(at, int64_t{});
    }
  }
  return changes;
}

struct Extent {  // from a pointer on
  int64_t begin, end;
};
Extent Join(const Extent& a, const Extent& b) {
  if (a.begin == a.end) return b;
  if (b.begin == b.end) return a;
  return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
}

void Apply(const Extent& reach, policy::Bytes size, policy::SeenTouch* touch) {
  const auto end = static_cast<int64_t>(size), at = static_cast<int64_t>(touch->offset);
  const int64_t first = std::clamp<int64_t>(at + reach.begin, 0, end);
  const int64_t last = std::clamp<int64_t>(at + reach.end, first, end);
  // Nothing, or nothing of what it points into: the least that can be said.
  touch->bytes = static_cast<policy::Bytes>(std::max<int64_t>(last - first, 1));
  if (last > first) touch->offset = static_cast<policy::Bytes>(first);
}

std::mutex reaches_mutex;
Reaches& TheReaches() {
  static Reaches* reaches = new Reaches;  // never destroyed: planning may go on at exit
  return *reaches;
}

// Pointers to plain memory too: launches that differ in them reach equally far.
void AddPlainPointers(LaunchedAs* launch) {
  for (const Parameter& parameter : launch->info->parameters) {
    const uint32_t at = parameter.offset;
    if (parameter.bytes != 8 || at % 8 != 0 || at + 8 > launch->arguments.size()) continue;
    NativeSizes::Entry entry;
    if (!g_native_sizes.Find(WordAt<uint64_t>(launch->arguments, at), &entry)) continue;
    if (std::find(launch->pointers.begin(), launch->pointers.end(), at) == launch->pointers.end()) {
      launch->pointers.push_back(at);
    }
  }
}

void FindOne(size_t i, unsigned ahead, Recorder::Period* period) {
  using Period = Recorder::Period;
  const Period::Launched& launched = period->launched[i];
  const policy::SeenLaunch& launch = period->seen.launches[i];
  if (launched.info == nullptr || launched.info->name == nullptr) return;
  if (launched.argument_bytes == 0) return;
  const char* bytes = period->argument_bytes.data();
  LaunchedAs as{launched.info, launched.shape, {}, {}};
  const char* first = bytes + launched.first_argument;
  as.arguments.assign(first, first + launched.argument_bytes);
  std::vector<uint32_t> touches;  // of each pointer, but for the last ones
  bool wanted = false;
  for (uint32_t t = launch.first_touch; t < launch.first_touch + launch.touch_count; ++t) {
    if (period->pointer_at[t] == Period::kNowhere) continue;
    touches.push_back(t);
    as.pointers.push_back(period->pointer_at[t]);
    wanted |= period->seen.touches[t].bytes == 0;
  }
  if (!wanted) return;
  AddPlainPointers(&as);
  const std::vector<ptx::Reach> now = TheReaches().Of(as);
  if (now.empty()) return;
  std::vector<ptx::Reach> later;
  LaunchedAs next = as;
  if (launched.first_earlier != Period::kNowhere &&
      GoOn({bytes + launched.first_earlier, launched.argument_bytes}, ahead, &next)) {
    later = TheReaches().Of(next);
    period->grows = true;
  }
  for (size_t k = 0; k < touches.size(); ++k) {
    policy::SeenTouch& touch = period->seen.touches[touches[k]];
    if (touch.bytes > 0 || !now[k].known) continue;
    Extent extent{now[k].begin, now[k].end};
    if (!later.empty() && later[k].known) {
      const int64_t moved = WordAt<int64_t>(next.arguments, as.pointers[k]) -
                            WordAt<int64_t>(as.arguments, as.pointers[k]);
      extent = Join(extent, {later[k].begin + moved, later[k].end + moved});
    }
    Apply(extent, period->seen.allocations[touch.allocation], &touch);
  }
}

}  // namespace

size_t FindReaches(unsigned ahead, Recorder::Period* period) {
  std::lock_guard lock(reaches_mutex);
  const size_t before = TheReaches().found();
  for (size_t i = 0; i < period->launched.size(); ++i) FindOne(i, ahead, period);
  return TheReaches().found() - before;
}

}  // namespace atp::shim
