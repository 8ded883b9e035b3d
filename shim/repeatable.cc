// SPDX-License-Identifier: Apache-2.0
#include "shim/repeatable.h"

#include <string.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>

#include "ptx/purity.h"
#include "shim/functions.h"
#include "shim/kernel_images.h"
#include "shim/parsed_texts.h"

namespace atp::shim {
namespace {

using Period = Recorder::Period;

// A kernel by the texts of the image that it was loaded from: any of them may be the one that runs.
struct Kernels {
  size_t texts = 0;
  std::vector<std::unique_ptr<const ptx::PureKernel>> list;
  std::string why;  // not empty: one of them is not pure
};

struct Arguments {
  std::span<const char> bytes;
  std::vector<uint32_t> pointers;  // where they lie among them
  // One for each pointer; null: it leads to memory that the loop does not watch.
  std::vector<const policy::SeenTouch*> touches;
};

bool SameUses(const ptx::LaunchProof& a, const ptx::LaunchProof& b) {
  return std::equal(a.uses.begin(), a.uses.end(), b.uses.begin(), b.uses.end(),
                    [](const ptx::PointerUse& x, const ptx::PointerUse& y) {
                      return x.read_begin == y.read_begin && x.read_end == y.read_end &&
                             x.write_begin == y.write_begin && x.write_end == y.write_end;
                    });
}

class Proofs {
 public:
  // Launches that differ in the values of their pointers only have one proof.
  const ptx::LaunchProof& Of(const FunctionInfo& info, const LaunchShape& shape,
                             const Arguments& arguments) {
    constexpr size_t kMost = 4096;
    const Kernels& kernels = KernelsOf(info);
    std::string key = KeyOf(info, kernels.texts, shape, arguments);
    if (known_.size() >= kMost && known_.count(key) == 0) known_.clear();
    const auto [at, added] = known_.try_emplace(std::move(key));
    if (added) at->second = Prove(kernels, shape, arguments);
    return at->second;
  }

 private:
  static std::string NameOf(const FunctionInfo& info) {
    return std::string(info.name) + '\0' + std::to_string(info.code);
  }

  const Kernels& KernelsOf(const FunctionInfo& info) {
    const char* kernel = info.name;
    const auto texts = TextsOf(kernel, info.code);
    Kernels& kernels = kernels_[NameOf(info)];
    if (kernels.texts == texts.size() && kernels.texts > 0) return kernels;
    kernels = {texts.size(), {}, {}};
    if (texts.empty()) kernels.why = "no PTX";
    for (size_t k = 0; k < texts.size() && kernels.why.empty(); ++k) {
      const ptx::ParsedModule& module = ParsedText(texts[k]);
      const auto found = module.function_by_name.find(kernel);
      if (found == module.function_by_name.end()) {
        kernels.why = "PTX that is not understood";
        break;
      }
      const ptx::Function& function = *module.functions[found->second];
      kernels.list.push_back(ptx::PureKernel::Make(module, function, &kernels.why));
    }
    return kernels;
  }

  static std::string KeyOf(const FunctionInfo& info, size_t texts, const LaunchShape& shape,
                           const Arguments& arguments) {
    std::string key = NameOf(info);
    key.append(1, '\0').append(std::to_string(texts)).append(1, '\0');
    key.append(reinterpret_cast<const char*>(&shape), sizeof shape);
    const size_t first = key.size();
    key.append(arguments.bytes.data(), arguments.bytes.size());
    for (const uint32_t at : arguments.pointers) key.replace(first + at, 8, 8, '\0');
    for (const uint32_t at : arguments.pointers) {
      key.append(reinterpret_cast<const char*>(&at), sizeof at);
    }
    return key;
  }

  static ptx::LaunchProof Prove(const Kernels& kernels, const LaunchShape& shape,
                                const Arguments& arguments) {
    constexpr uint64_t kSteps = 1u << 20;
    ptx::LaunchProof proof;
    proof.why = kernels.why;
    if (!proof.proven()) return proof;
    ptx::Geometry geometry;
    std::copy_n(shape.grid, 3, geometry.grid);
    std::copy_n(shape.block, 3, geometry.block);
    for (const auto& kernel : kernels.list) {
      ptx::LaunchProof one = kernel->Prove(geometry, arguments.bytes, arguments.pointers, kSteps);
      const bool other = &kernel != &kernels.list.front() && one.proven() && !SameUses(one, proof);
      if (other) one.why = "its image has texts that differ";
      proof = std::move(one);
      if (!proof.proven()) break;
    }
    return proof;
  }

  std::unordered_map<std::string, Kernels> kernels_;
  std::unordered_map<std::string, ptx::LaunchProof> known_;
};

uint64_t WordAt(std::span<const char> bytes, uint32_t at) {
  uint64_t word;
  memcpy(&word, &bytes[at], sizeof word);
  return word;
}

// False: something that it touches is not known by a pointer among its arguments.
bool ArgumentsOf(const Period& period, size_t i, Arguments* arguments) {
  const Period::Launched& launched = period.launched[i];
  const policy::SeenLaunch& launch = period.seen.launches[i];
  arguments->bytes = {period.argument_bytes.data() + launched.first_argument,
                      launched.argument_bytes};
  for (uint32_t t = launch.first_touch; t < launch.first_touch + launch.touch_count; ++t) {
    if (period.pointer_at[t] == Period::kNowhere || period.seen.touches[t].bytes > 0) return false;
    arguments->pointers.push_back(period.pointer_at[t]);
    arguments->touches.push_back(&period.seen.touches[t]);
  }
  const std::vector<uint32_t> watched = arguments->pointers;
  const std::span<const WordAccess> access = launched.info->access;
  for (uint32_t word = 0; word < access.size() && 8 * (word + 1) <= launched.argument_bytes;
       ++word) {
    const bool used = access[word].reads || access[word].writes;
    if (!used || WordAt(arguments->bytes, 8 * word) == 0) continue;
    if (std::find(watched.begin(), watched.end(), 8 * word) != watched.end()) continue;
    arguments->pointers.push_back(8 * word);
    arguments->touches.push_back(nullptr);
  }
  return true;
}

// Whether the range lies in the allocation that its pointer points into.
bool Inside(const Period& period, const policy::SeenTouch& touch, int64_t begin, int64_t end) {
  const auto at = static_cast<int64_t>(touch.offset);
  return at + begin >= 0 &&
         at + end <= static_cast<int64_t>(period.seen.allocations[touch.allocation]);
}

uint64_t HashOf(uint64_t hash, std::span<const char> bytes) {
  for (const char c : bytes) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return hash;
}

// Why the launch may not run again; empty: it may, as `again`.
std::string Refusal(const Period& period, size_t i, Proofs* proofs, Again* again) {
  const Period::Launched& launched = period.launched[i];
  if (launched.info == nullptr || launched.info->name == nullptr) return "no kernel that is known";
  if (launched.argument_bytes == 0) return "its arguments are not known";
  if (launched.shape.shared_bytes == LaunchShape::kOtherWay) return "launched with attributes";
  Arguments arguments;
  if (!ArgumentsOf(period, i, &arguments)) return "touches other than through its arguments";
  const ptx::LaunchProof& proof = proofs->Of(*launched.info, launched.shape, arguments);
  if (!proof.proven()) return proof.why;
  if (!ptx::OutputsApart(proof, arguments.bytes, arguments.pointers)) return "writes what it reads";
  again->position = static_cast<uint32_t>(i);
  again->info = launched.info;
  again->shape = launched.shape;
  again->arguments.assign(arguments.bytes.begin(), arguments.bytes.end());
  for (size_t k = 0; k < proof.uses.size(); ++k) {
    const ptx::PointerUse& use = proof.uses[k];
    const policy::SeenTouch* touch = arguments.touches[k];
    again->unwatched |= touch == nullptr && (use.reads() || use.writes());
    if (touch != nullptr && !(Inside(period, *touch, use.read_begin, use.read_end) &&
                              Inside(period, *touch, use.write_begin, use.write_end))) {
      return "reaches beyond an allocation";
    }
    if (!use.writes()) continue;
    if (use.reads()) return "reads through a pointer that it writes through";
    const uint64_t pointer = WordAt(arguments.bytes, arguments.pointers[k]);
    again->outputs.push_back(
        {arguments.pointers[k], pointer + static_cast<uint64_t>(use.write_begin),
         static_cast<uint64_t>(use.write_end - use.write_begin), use.write_begin,
         touch != nullptr ? period.allocations[touch->allocation] : nullptr});
  }
  again->kind = HashOf(launched.info->identity,
                       {reinterpret_cast<const char*>(&again->shape), sizeof again->shape});
  again->key = HashOf(again->kind, again->arguments);
  std::vector<char> same = again->arguments;
  for (const uint32_t at : arguments.pointers) memset(&same[at], 0, sizeof(uint64_t));
  again->kind = HashOf(again->kind, same);
  return "";
}

std::mutex proofs_mutex;
Proofs& TheProofs() {
  static Proofs* proofs = new Proofs;  // never destroyed: planning may go on at exit
  return *proofs;
}

}  // namespace

uint64_t Again::WrittenBytes() const {
  uint64_t bytes = 0;
  for (const Output& output : outputs) bytes += output.bytes;
  return bytes;
}

Repeatable FindRepeatable(const Recorder::Period& period) {
  std::lock_guard lock(proofs_mutex);
  Repeatable result;
  result.launches.resize(period.seen.launches.size());
  for (size_t i = 0; i < result.launches.size() && i < period.launched.size(); ++i) {
    Again again;
    const std::string why = Refusal(period, i, &TheProofs(), &again);
    result.launches[i] = why.empty();
    if (why.empty()) {
      ++result.count;
      result.written_bytes += again.WrittenBytes();
      if (again.unwatched) ++result.at_once;
      result.again.push_back(std::move(again));
      continue;
    }
    const FunctionInfo* info = period.launched[i].info;
    const char* name = info != nullptr && info->name != nullptr ? info->name : "-";
    ++result.refused[std::string(name) + ": " + why];
  }
  return result;
}

const Again* AgainAt(const Repeatable& repeatable, uint32_t position) {
  const auto at =
      std::lower_bound(repeatable.again.begin(), repeatable.again.end(), position,
                       [](const Again& again, uint32_t wanted) { return again.position < wanted; });
  return at != repeatable.again.end() && at->position == position ? &*at : nullptr;
}

bool IsLaunchOf(const Again& again, const LaunchView& launch) {
  const LaunchArguments& given = launch.arguments;
  if (given.info != again.info) return false;
  if (memcmp(&given.shape, &again.shape, sizeof given.shape) != 0) return false;
  const auto parameters = again.info->parameters;
  const bool whole = std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& p) {
    return size_t{p.offset} + p.bytes <= again.arguments.size();
  });
  if (!whole) return false;
  if (given.packed != nullptr) {
    return given.packed_bytes == again.arguments.size() &&
           memcmp(given.packed, again.arguments.data(), given.packed_bytes) == 0;
  }
  return given.parameters != nullptr &&
         std::all_of(parameters.begin(), parameters.end(), [&](const Parameter& p) {
           const auto i = static_cast<size_t>(&p - parameters.data());
           return memcmp(given.parameters[i], &again.arguments[p.offset], p.bytes) == 0;
         });
}

}  // namespace atp::shim
