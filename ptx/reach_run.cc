// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>

#include "ptx/reach.h"
#include "ptx/reach_arithmetic.h"
#include "ptx/reach_code.h"

namespace atp::ptx {
namespace {

// Where a value comes from: nowhere, a pointer of the launch (1 + its number), or one of these.
using Origin = uint16_t;
constexpr Origin kNowhere = 0, kOwn = 0xFFFD, kParameterSpace = 0xFFFE, kMixed = 0xFFFF;

struct Value {
  uint64_t bits = 0;
  Origin origin = kNowhere;
  bool known = true;
};

// A pointer stays one where an index is added to it, and is none where it is a factor or is
// compared.
bool IsIndex(ReachOp op, unsigned operand) {
  switch (op) {
    case ReachOp::kMul:
    case ReachOp::kMulHi:
    case ReachOp::kMulWide:
    case ReachOp::kDiv:
    case ReachOp::kRem:
    case ReachOp::kShl:
    case ReachOp::kShr:
    case ReachOp::kBfe:
    case ReachOp::kBfi:
    case ReachOp::kLop3:
    case ReachOp::kNeg:
    case ReachOp::kNot:
    case ReachOp::kAbs:
    case ReachOp::kPack:
    case ReachOp::kUnpack:
      return true;
    case ReachOp::kMad:
    case ReachOp::kMadHi:
    case ReachOp::kMadWide:
      return operand < 2;
    default:
      return false;
  }
}

using Place = std::array<uint32_t, 3>;

uint64_t Count(const uint32_t size[3]) { return uint64_t{size[0]} * size[1] * size[2]; }

std::vector<Place> Corners(const uint32_t size[3]) {
  std::vector<Place> places;
  for (uint32_t corner = 0; corner < 8; ++corner) {
    places.push_back(
        {corner & 1 ? size[0] - 1 : 0, corner & 2 ? size[1] - 1 : 0, corner & 4 ? size[2] - 1 : 0});
  }
  return places;
}

// The corners, and so many others evenly apart: all when there are no more.
std::vector<Place> PlacesToTry(const uint32_t size[3], uint64_t others) {
  std::vector<Place> places = Corners(size);
  const uint64_t count = Count(size);
  others = std::min(others, count);
  for (uint64_t k = 0; k < others; ++k) {
    const uint64_t number = k * count / others;
    places.push_back({static_cast<uint32_t>(number % size[0]),
                      static_cast<uint32_t>(number / size[0] % size[1]),
                      static_cast<uint32_t>(number / size[0] / size[1])});
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

class ReachRun {
 public:
  ReachRun(const ReachCode& code, const Geometry& geometry, std::span<const char> parameters,
           std::span<const uint32_t> pointers, uint64_t budget)
      : code_(code),
        geometry_(geometry),
        parameters_(parameters),
        pointers_(pointers),
        budget_(budget),
        extents_(pointers.size()) {
    values_.resize(code.registers_);
    for (size_t k = 0; k < code.constants_.size(); ++k) {
      values_[code.first_constant_ + k].bits = code.constants_[k];
    }
    for (uint32_t d = 0; d < 3; ++d) {
      Special(kNtid + d) = geometry.block[d];
      Special(kNctaid + d) = geometry.grid[d];
    }
  }

  std::vector<Reach> Run() {
    if (Count(geometry_.grid) == 0 || Count(geometry_.block) == 0) return {};
    for (const bool take : {false, true}) {
      if (take && !doubtful_) break;
      take_ = take;
      if (!RunSome()) return {};
    }
    return mixed_ ? std::vector<Reach>{} : Result();
  }

 private:
  struct Extent {
    bool touched = false, lost = false;
    int64_t begin = INT64_MAX, end = INT64_MIN;
  };

  // All of a small launch. Of others many blocks with a few threads each, and the blocks at the
  // corners with many threads: as many as a sixteenth of the budget allows for, which is kept for
  // threads that run long.
  bool RunSome() {
    constexpr uint64_t kBlocks = 512, kThreads = 1024, kFewThreads = 4, kAll = 4096;
    const uint64_t before = steps_;
    for (const Place& thread : Corners(geometry_.block)) {
      if (!RunThread({0, 0, 0}, thread)) return false;
    }
    const uint64_t thread_steps = std::max<uint64_t>((steps_ - before) / 8, 1);
    const uint64_t threads = budget_ / 16 / thread_steps;
    const uint64_t in_grid = Count(geometry_.grid), in_block = Count(geometry_.block);
    if (in_grid <= kAll && in_grid * in_block <= threads) {
      return RunPlaces(PlacesToTry(geometry_.grid, kAll), PlacesToTry(geometry_.block, kThreads));
    }
    return RunPlaces(Corners(geometry_.grid),
                     PlacesToTry(geometry_.block, std::min(threads / 8, kThreads))) &&
           RunPlaces(PlacesToTry(geometry_.grid, std::min(threads / (8 + kFewThreads), kBlocks)),
                     PlacesToTry(geometry_.block, kFewThreads));
  }
  bool RunPlaces(const std::vector<Place>& blocks, const std::vector<Place>& threads) {
    for (const Place& block : blocks) {
      for (const Place& thread : threads) {
        if (!RunThread(block, thread)) return false;
      }
    }
    return true;
  }

  uint64_t& Special(uint32_t which) { return values_[code_.first_special_ + which].bits; }

  bool RunThread(const Place& block, const Place& thread) {
    constexpr uint64_t kLongThread = 1u << 20;
    for (uint32_t d = 0; d < 3; ++d) {
      Special(kTid + d) = thread[d];
      Special(kCtaid + d) = block[d];
    }
    const uint64_t number = thread[0] + uint64_t{geometry_.block[0]} *
                                            (thread[1] + uint64_t{geometry_.block[1]} * thread[2]);
    Special(kLane) = number % 32;
    Special(kWarp) = number / 32;
    met_doubt_ = false;
    uint64_t steps = 0;
    for (uint32_t at = 0; at < code_.steps_.size();) {
      const ReachStep& step = code_.steps_[at];
      if (++steps > kLongThread || ++steps_ > budget_) {
        if (met_doubt_ && steps_ <= budget_) break;  // a loop that data would have ended
        return false;
      }
      const Value guard = step.guard == kNoRegister ? Value{} : values_[step.guard];
      if (step.guard != kNoRegister && guard.known && (guard.bits != 0) == step.guard_negated) {
        ++at;
        continue;
      }
      if (step.op == ReachOp::kBranch || step.op == ReachOp::kExit) {
        const bool goes = guard.known || Doubt(step, at);
        if (goes && step.op == ReachOp::kExit) break;
        at = goes ? step.target : at + 1;
        continue;
      }
      Do(step, guard.known);
      ++at;
    }
    return true;
  }

  // Whether a branch that hangs on data is taken now: forward ones one time and not the other,
  // backward ones never.
  bool Doubt(const ReachStep& step, uint32_t at) {
    met_doubt_ = doubtful_ = true;
    return take_ && (step.op == ReachOp::kExit || step.target > at);
  }

  const Value& Read(uint32_t reg) const { return reg == kNoRegister ? kZero : values_[reg]; }

  void Do(const ReachStep& step, bool certain) {
    switch (step.op) {
      case ReachOp::kTouch:
        return Touch(step);
      case ReachOp::kUnknown:
        return Set(step.to[0], {0, kNowhere, false});
      case ReachOp::kOwnAddress:
        return Set(step.to[0], {0, kOwn, false});
      case ReachOp::kParameterAddress:
        return Set(step.to[0], {static_cast<uint64_t>(step.addend), kParameterSpace, true});
      case ReachOp::kLoadParameter:
        return LoadParameter(step);
      case ReachOp::kSetp:
        return Compare(step, certain);
      case ReachOp::kSelp:
        return Select(step, certain);
      case ReachOp::kUnpack: {
        const Value& from = Read(step.from[0]);
        const unsigned half = step.width / 2u;
        Set(step.to[0], {Cut(from.bits, half), kNowhere, from.known && certain});
        return Set(step.to[1],
                   {Cut(from.bits >> (8 * half), half), kNowhere, from.known && certain});
      }
      default:
        return Calculate(step, certain);
    }
  }

  void Set(uint32_t reg, Value value) {
    if (reg != kNoRegister) values_[reg] = value;
  }

  static Origin Merge(Origin a, Origin b) {
    return a == kNowhere || a == b ? b : b == kNowhere ? a : kMixed;
  }

  void Calculate(const ReachStep& step, bool certain) {
    Value result;
    uint64_t bits[4];
    for (unsigned k = 0; k < 4; ++k) {
      const Value& v = Read(step.from[k]);
      bits[k] = v.bits;
      result.known &= v.known;
      if (step.to_width == 8 && !IsIndex(step.op, k)) {
        // The difference of two pointers is an index.
        const bool difference = step.op == ReachOp::kSub && k == 1 && v.origin == result.origin;
        result.origin = difference ? kNowhere : Merge(result.origin, v.origin);
      }
    }
    result.bits = Cut(Compute(step, bits[0], bits[1], bits[2], bits[3]), step.to_width);
    // One side can decide alone.
    const bool zero = step.op == ReachOp::kAnd, one = step.op == ReachOp::kOr && step.width == 0;
    for (unsigned k = 0; k < 2 && (zero || one) && !result.known; ++k) {
      const Value& v = Read(step.from[k]);
      if (!v.known || (v.bits != 0) == zero) continue;
      result = {one ? 1u : 0u, kNowhere, true};
    }
    result.known &= certain;
    Set(step.to[0], result);
  }

  Origin PointerAt(uint64_t byte) const {
    const auto found = std::find(pointers_.begin(), pointers_.end(), byte);
    return found == pointers_.end() ? kNowhere
                                    : static_cast<Origin>(1 + (found - pointers_.begin()));
  }

  void LoadParameter(const ReachStep& step) {
    Value at{static_cast<uint64_t>(step.addend), kParameterSpace, true};
    if (step.from[0] != kNoRegister) {
      at = Read(step.from[0]);
      at.bits += static_cast<uint64_t>(step.addend);
    }
    Value value{0, kNowhere, false};
    const bool inside = at.known && at.origin == kParameterSpace && at.bits <= parameters_.size() &&
                        step.width <= parameters_.size() - at.bits;
    if (inside) {
      std::memcpy(&value.bits, &parameters_[at.bits], step.width);
      value.bits = Cut(Extended(value.bits, step), 8);
      value.known = true;
      if (step.width == 8) value.origin = PointerAt(at.bits);
    }
    Set(step.to[0], value);
  }

  void Compare(const ReachStep& step, bool certain) {
    const Value &a = Read(step.from[0]), &b = Read(step.from[1]), &c = Read(step.from[2]);
    const bool compared = Holds(a.bits, b.bits, step), other = c.bits != 0;
    const bool known = a.known && b.known;
    const auto combine = [&](bool x) -> Value {
      switch (step.combination) {
        case Combination::kNone:
          return {x, kNowhere, known};
        case Combination::kAnd:
          if ((known && !x) || (c.known && !other)) return {0, kNowhere, true};
          return {x && other, kNowhere, known && c.known};
        case Combination::kOr:
          if ((known && x) || (c.known && other)) return {1, kNowhere, true};
          return {x || other, kNowhere, known && c.known};
        case Combination::kXor:
          return {x != other, kNowhere, known && c.known};
      }
      return {};
    };
    for (unsigned k = 0; k < 2; ++k) {
      Value value = combine(k == 0 ? compared : !compared);
      value.known &= certain;
      Set(step.to[k], value);
    }
  }

  void Select(const ReachStep& step, bool certain) {
    const Value &a = Read(step.from[0]), &b = Read(step.from[1]), &which = Read(step.from[2]);
    if (which.known) {
      Value value = which.bits != 0 ? a : b;
      value.known &= certain;
      return Set(step.to[0], value);
    }
    Set(step.to[0], {0, Merge(a.origin, b.origin), false});
  }

  void Touch(const ReachStep& step) {
    const Value& base = Read(step.from[0]);
    const Value& stride = Read(step.from[1]);
    if (base.origin == kOwn) return;
    mixed_ |= base.origin == kMixed;
    if (base.origin == kNowhere || base.origin >= kOwn) {
      wild_ |= !base.known;
      return;
    }
    Extent& extent = extents_[base.origin - 1u];
    if (!base.known || !stride.known) {
      extent.lost = true;
      return;
    }
    uint64_t pointer = 0;
    std::memcpy(&pointer, &parameters_[pointers_[base.origin - 1u]], sizeof pointer);
    const auto begin =
        static_cast<int64_t>(base.bits + static_cast<uint64_t>(step.addend) - pointer);
    const auto bytes = static_cast<int64_t>(step.bytes + step.rows * Cut(stride.bits, 4));
    extent.touched = true;
    extent.begin = std::min(extent.begin, begin);
    extent.end = std::max(extent.end, begin + bytes);
  }

  // Where some address came from nowhere that is known, a pointer that seems unused may be used.
  std::vector<Reach> Result() const {
    std::vector<Reach> result;
    for (const Extent& extent : extents_) {
      Reach reach;
      reach.known = !extent.lost && (extent.touched || !wild_);
      if (reach.known && extent.touched) {
        reach.begin = extent.begin;
        reach.end = extent.end;
      }
      result.push_back(reach);
    }
    return result;
  }

  static constexpr Value kZero{};

  const ReachCode& code_;
  const Geometry& geometry_;
  const std::span<const char> parameters_;
  const std::span<const uint32_t> pointers_;
  const uint64_t budget_;
  std::vector<Extent> extents_;  // of the pointers
  std::vector<Value> values_;
  uint64_t steps_ = 0;
  bool take_ = false, doubtful_ = false, met_doubt_ = false;
  bool mixed_ = false;  // an address is made of two pointers
  bool wild_ = false;   // an address is not known and comes from no parameter
};

std::vector<Reach> ReachCode::Run(const Geometry& geometry, std::span<const char> parameters,
                                  std::span<const uint32_t> pointers, uint64_t budget) const {
  for (const uint32_t at : pointers) {
    if (at % 8 != 0 || at > parameters.size() || parameters.size() - at < 8) return {};
  }
  return pointers.size() >= kOwn ? std::vector<Reach>{}
                                 : ReachRun(*this, geometry, parameters, pointers, budget).Run();
}

}  // namespace atp::ptx
