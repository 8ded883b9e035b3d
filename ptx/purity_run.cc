// SPDX-License-Identifier: Apache-2.0
#include "ptx/purity_run.h"

#include <algorithm>
#include <cstring>

#include "ptx/reach_arithmetic.h"

namespace atp::ptx {
namespace {

constexpr size_t kMostPieces = 8u << 20;
constexpr int64_t kFar = int64_t{1} << 48;  // from a pointer: beyond any address space

bool Counts(const uint32_t size[3]) { return size[0] > 0 && size[1] > 0 && size[2] > 0; }

}  // namespace

bool Written::AddOne(int64_t begin, int64_t end) {
  if (!pieces_.empty() && pieces_.back().second == begin) {
    pieces_.back().second = end;
    return true;
  }
  if (pieces_.size() >= kMostPieces) return false;
  pieces_.emplace_back(begin, end);
  return true;
}

bool Written::Add(int64_t begin, int64_t step, uint64_t count, int64_t bytes) {
  const int64_t length = bytes * static_cast<int64_t>(count);
  if (step == bytes) return AddOne(begin, begin + length);
  if (step == -bytes) return AddOne(begin + bytes - length, begin + bytes);
  for (uint64_t k = 0; k < count; ++k, begin += step) {
    if (!AddOne(begin, begin + bytes)) return false;
  }
  return true;
}

const char* Written::Range(int64_t* begin, int64_t* end) {
  if (pieces_.empty()) return nullptr;
  std::sort(pieces_.begin(), pieces_.end());
  for (size_t k = 1; k < pieces_.size(); ++k) {
    if (pieces_[k].first < pieces_[k - 1].second) return "a byte is written twice";
    if (pieces_[k].first > pieces_[k - 1].second) return "what is written has gaps";
  }
  *begin = pieces_.front().first;
  *end = pieces_.back().second;
  return nullptr;
}

PurityRun::PurityRun(const ReachCode& code, const Geometry& geometry,
                     std::span<const char> parameters, std::span<const uint32_t> pointers,
                     uint64_t budget)
    : code_(code),
      geometry_(geometry),
      parameters_(parameters),
      pointers_(pointers),
      budget_(budget),
      written_(pointers.size()),
      values_(code.registers_),
      set_in_(code.registers_) {
  proof_.uses.resize(pointers.size());
  for (size_t k = 0; k < code.constants_.size(); ++k) {
    values_[code.first_constant_ + k].bits = code.constants_[k];
  }
  for (uint32_t d = 0; d < 3; ++d) {
    Special(kNtid + d).bits = geometry.block[d];
    Special(kNctaid + d).bits = geometry.grid[d];
  }
}

LaunchProof PurityRun::Run() {
  if (!Counts(geometry_.grid) || !Counts(geometry_.block)) Fail("an empty launch");
  for (uint32_t z = 0; z < geometry_.grid[2] && proof_.proven(); ++z) {
    for (uint32_t y = 0; y < geometry_.grid[1] && proof_.proven(); ++y) {
      for (uint32_t x = 0; x < geometry_.grid[0] && proof_.proven(); ++x) {
        Special(kCtaid).bits = x;
        Special(kCtaid + 1).bits = y;
        Special(kCtaid + 2).bits = z;
        RunBlock();
      }
    }
  }
  for (size_t k = 0; k < written_.size() && proof_.proven(); ++k) {
    PointerUse& use = proof_.uses[k];
    if (const char* why = written_[k].Range(&use.write_begin, &use.write_end)) Fail(why);
  }
  const auto writes = [](const PointerUse& use) { return use.writes(); };
  if (proof_.proven() && std::none_of(proof_.uses.begin(), proof_.uses.end(), writes)) {
    Fail("it writes nothing");
  }
  return std::move(proof_);
}

bool PurityRun::RunBlock() {
  for (uint32_t z = 0; z < geometry_.block[2]; ++z) {
    for (uint32_t y = 0; y < geometry_.block[1]; ++y) {
      thread_[1] = y, thread_[2] = z;
      if (!RunRow({0, geometry_.block[0]})) return false;
    }
  }
  return true;
}

bool PurityRun::RunRow(Row row) {
  std::vector<Row> rows{row};  // the first one is last
  while (!rows.empty()) {
    row = rows.back();
    rows.pop_back();
    SetThreads(row);
    const Outcome outcome = RunThreads(row.count);
    if (outcome == Outcome::kFailed) return false;
    if (outcome == Outcome::kDone) {
      if (!Commit(row.count)) return Fail("too many pieces are written"), false;
      continue;
    }
    if (row.count == 1) return Fail("an instruction that is not followed"), false;
    const uint32_t half = row.count / 2;
    rows.push_back({row.first + half, row.count - half});
    rows.push_back({row.first, half});
  }
  return true;
}

void PurityRun::SetThreads(const Row& row) {
  ++run_;
  touches_.clear();
  const int64_t step = row.count > 1 ? 1 : 0;
  Special(kTid) = {row.first, step};
  Special(kTid + 1).bits = thread_[1];
  Special(kTid + 2).bits = thread_[2];
  const uint64_t number = row.first + uint64_t{geometry_.block[0]} *
                                          (thread_[1] + uint64_t{geometry_.block[1]} * thread_[2]);
  Special(kLane) = {number % 32, step};
  if (number % 32 + row.count > 32) Special(kLane).state = RowValue::State::kRagged;
}

PurityRun::Outcome PurityRun::RunThreads(uint32_t count) {
  for (uint32_t at = 0; at < code_.steps_.size();) {
    const ReachStep& step = code_.steps_[at];
    if (++proof_.steps > budget_) return Fail("it takes too many steps");
    RowValue guard = step.guard == kNoRegister ? RowValue{1} : Read(step.guard);
    if (step.guard != kNoRegister && step.guard_negated) guard.bits ^= 1;
    if (guard.known() && guard.bits == 0) {
      ++at;
      continue;
    }
    if (step.op == ReachOp::kBranch || step.op == ReachOp::kExit) {
      if (!guard.known()) return Fail("a branch hangs on data");
      if (step.op == ReachOp::kExit) break;
      at = step.target;
      continue;
    }
    const Outcome outcome = Do(step, guard.known(), count);
    if (outcome != Outcome::kDone) return outcome;
    ++at;
  }
  return Outcome::kDone;
}

PurityRun::Outcome PurityRun::Do(const ReachStep& step, bool certain, uint32_t count) {
  if (step.op == ReachOp::kTouch) return AddTouch(step, certain);
  if (!certain) {
    for (const uint32_t to : step.to) Set(to, RowValue::Unknown());
    return Outcome::kDone;
  }
  if (step.op == ReachOp::kLoadParameter) return LoadParameter(step);
  if (step.op == ReachOp::kParameterAddress) {
    Set(step.to[0], {static_cast<uint64_t>(step.addend), 0, RowValue::kParameterBuffer});
    return Outcome::kDone;
  }
  RowValue from[4], to[2];
  for (unsigned k = 0; k < 4; ++k) {
    if (step.from[k] != kNoRegister) from[k] = Read(step.from[k]);
  }
  if (!ComputeRow(step, from, count, to)) return Outcome::kSplit;
  for (unsigned k = 0; k < 2; ++k) Set(step.to[k], to[k]);
  return Outcome::kDone;
}

PurityRun::Outcome PurityRun::LoadParameter(const ReachStep& step) {
  RowValue at{0, 0, RowValue::kParameterBuffer};
  if (step.from[0] != kNoRegister) at = Read(step.from[0]);
  if (at.state == RowValue::State::kRagged || !at.same()) return Outcome::kSplit;
  at.bits += static_cast<uint64_t>(step.addend);
  const bool inside = at.known() && at.origin == RowValue::kParameterBuffer &&
                      at.bits <= parameters_.size() && step.width <= parameters_.size() - at.bits &&
                      step.width <= 8;
  if (!inside) {
    Set(step.to[0], RowValue::Unknown());
    return Outcome::kDone;
  }
  RowValue value;
  for (size_t k = 0; k < pointers_.size(); ++k) {
    if (pointers_[k] >= at.bits + step.width || at.bits >= pointers_[k] + 8u) continue;
    // A part of a pointer decides nothing; all of it is where offsets are counted from.
    const bool whole = pointers_[k] == at.bits && step.width == 8;
    value = whole ? RowValue{0, 0, static_cast<RowValue::Origin>(k + 1)} : RowValue::Unknown();
    Set(step.to[0], value);
    return Outcome::kDone;
  }
  std::memcpy(&value.bits, &parameters_[at.bits], step.width);
  value.bits = Extended(value.bits, step);
  Set(step.to[0], value);
  return Outcome::kDone;
}

PurityRun::Outcome PurityRun::AddTouch(const ReachStep& step, bool certain) {
  const RowValue base = Read(step.from[0]);
  const RowValue stride = step.from[1] == kNoRegister ? RowValue{} : Read(step.from[1]);
  if (base.state == RowValue::State::kRagged || stride.state == RowValue::State::kRagged) {
    return Outcome::kSplit;
  }
  if (step.stores && !certain) return Fail("a store hangs on data");
  if (!base.known() || !stride.known()) return Fail("an address hangs on data");
  if (base.number() || base.origin == RowValue::kParameterBuffer || !stride.number()) {
    return Fail("an address comes from no pointer among the parameters");
  }
  if (!stride.same()) return Outcome::kSplit;
  Touch touch;
  touch.pointer = base.origin - 1u;
  touch.begin = static_cast<int64_t>(base.bits + static_cast<uint64_t>(step.addend));
  touch.step = base.step;
  touch.bytes = static_cast<int64_t>(step.bytes + step.rows * Cut(stride.bits, 4));
  touch.stores = step.stores;
  if (touch.begin > kFar || touch.begin < -kFar || touch.step > kFar || touch.step < -kFar) {
    return Fail("an address far from its pointer");
  }
  touches_.push_back(touch);
  return Outcome::kDone;
}

bool PurityRun::Commit(uint32_t count) {
  for (const Touch& touch : touches_) {
    PointerUse& use = proof_.uses[touch.pointer];
    if (touch.stores) {
      if (!written_[touch.pointer].Add(touch.begin, touch.step, count, touch.bytes)) return false;
      continue;
    }
    const int64_t last = touch.begin + touch.step * static_cast<int64_t>(count - 1);
    const int64_t begin = std::min(touch.begin, last);
    const int64_t end = std::max(touch.begin, last) + touch.bytes;
    use.read_begin = use.reads() ? std::min(use.read_begin, begin) : begin;
    use.read_end = use.reads() ? std::max(use.read_end, end) : end;
  }
  return true;
}

RowValue PurityRun::Read(uint32_t reg) const {
  const auto fixed_end = code_.first_constant_ + static_cast<uint32_t>(code_.constants_.size());
  const bool fixed = reg >= code_.first_special_ && reg < fixed_end;
  return fixed || set_in_[reg] == run_ ? values_[reg] : RowValue::Unknown();
}

void PurityRun::Set(uint32_t reg, const RowValue& value) {
  if (reg == kNoRegister) return;
  values_[reg] = value;
  set_in_[reg] = run_;
}

RowValue& PurityRun::Special(uint32_t which) { return values_[code_.first_special_ + which]; }

PurityRun::Outcome PurityRun::Fail(const char* why) {
  if (proof_.why.empty()) proof_.why = why;
  return Outcome::kFailed;
}

}  // namespace atp::ptx
