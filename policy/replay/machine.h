// SPDX-License-Identifier: Apache-2.0
// The machine of the replay model: which blocks are on the device, a link with one copy engine in
// each direction, and a virtual clock. It knows nothing about policies; executors (plan_executor.h,
// rules_executor.h) tell it what to move. It shares no code with sim/: each checks the other.
// A block is 2 MiB of one tensor, except the tensor's tail, which counts its own bytes.
// One thread; no I/O.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "policy/replay/options.h"
#include "policy/replay/uses.h"
#include "policy/trace.h"

namespace atp::policy {

enum class CopyDirection : uint8_t { kH2d = 0, kD2h = 1 };

// Transfers of one direction that follow each other without a pause.
struct TransferRun {
  CopyDirection direction = CopyDirection::kH2d;
  double start = 0, end = 0;
  Bytes bytes = 0;
};
struct ResidencySample {
  double time = 0;
  Bytes bytes = 0;
};

class Machine {
 public:
  enum class State : uint8_t { kUnborn, kOut, kIn, kFetching, kEvicting };
  using Block = uint32_t;
  static constexpr Block kNoBlock = 0xffffffffu;

  // All three must outlive the machine. Global tensors start on the host, others unborn.
  Machine(const Trace& trace, const Uses& uses, const ReplayOptions& options);

  double now() const { return now_; }
  Bytes capacity() const { return capacity_; }
  Bytes used() const { return used_; }
  bool HasRoom(Bytes bytes) const { return used_ + bytes <= capacity_; }

  Block FirstBlock(uint32_t tensor) const { return first_[tensor]; }
  Block EndBlock(uint32_t tensor) const { return first_[tensor + 1]; }
  uint32_t TensorOf(Block block) const { return tensor_of_[block]; }
  State StateOf(Block block) const { return state_[block]; }
  Bytes BytesOf(Block block) const;
  uint32_t ResidentBlocks(uint32_t tensor) const { return resident_[tensor]; }
  bool FullyResident(uint32_t tensor) const {
    return remote_[tensor] || resident_[tensor] == first_[tensor + 1] - first_[tensor];
  }

  // Makes a block resident without a copy: born data, and the state at time 0. The caller has
  // checked for room.
  void Populate(Block block);
  // The tensor's blocks are the last victims: OldestArrival takes them when there is no other.
  void Protect(uint32_t tensor) { protected_[tensor] = true; }
  // The tensor never comes to the device: it counts as resident and takes no room.
  void MapRemote(uint32_t tensor) { remote_[tensor] = true; }
  bool Remote(uint32_t tensor) const { return remote_[tensor]; }
  // Drops all blocks of a dead tensor.
  void Kill(uint32_t tensor);
  void TakeWorkspace(Bytes bytes) { used_ += bytes; }
  void GiveWorkspace(Bytes bytes) { used_ -= bytes; }

  // Of a block on its way out, which gives back its room at its end.
  Bytes Leaving() const {
    const Engine& out = Of(CopyDirection::kD2h);
    return out.block == kNoBlock || out.doomed ? 0 : BytesOf(out.block);
  }
  bool Busy(CopyDirection direction) const { return Of(direction).block != kNoBlock; }
  // Starts the copy of a block that is out (fetch; takes its room) or in (evict; gives room at its
  // end). `setup` is driver CPU time, hidden behind the copy before when copies follow each other.
  void StartFetch(Block block, double setup);
  void StartEvict(Block block, double setup);
  // Leaves without a copy, at once.
  void DropClean(Block block);

  // Advances the clock to the end of the next copy, or to `until` if that comes first. True: a copy
  // ended.
  bool Advance(double until);

  // Where victims are chosen. The migration list is ordered by arrival, as the driver's own list
  // is. Both skip tensors for which `keep` answers true and answer kNoBlock if nothing is left.
  using Keep = std::function<bool(uint32_t tensor)>;
  Block OldestArrival(const Keep& keep) const;
  // The last resident block of the tensor whose next use (SetNextUse) is furthest, if later than
  // `beyond`.
  Block FurthestUse(Instance beyond, const Keep& keep) const;
  void SetNextUse(uint32_t tensor, Instance next);
  Instance NextUseOf(uint32_t tensor) const { return next_use_[tensor]; }

  Bytes moved(CopyDirection direction) const { return Of(direction).moved; }
  Bytes peak() const { return peak_; }
  void RecordTimeline() {  // from now on
    recording_ = true;
    transfers_.clear(), residency_.clear();
  }
  const std::vector<TransferRun>& transfers() const { return transfers_; }
  const std::vector<ResidencySample>& residency() const { return residency_; }

 private:
  struct Engine {
    Block block = kNoBlock;
    double begin = 0;      // when its bytes start to flow
    double remaining = 0;  // bytes
    double last_end = -1;
    bool doomed = false;  // its tensor died while it was on the link
    Bytes moved = 0;
  };
  Engine& Of(CopyDirection d) { return engines_[static_cast<int>(d)]; }
  const Engine& Of(CopyDirection d) const { return engines_[static_cast<int>(d)]; }
  double Rate(CopyDirection direction) const;
  void Start(CopyDirection direction, Block block, double setup);
  void Finish(CopyDirection direction);
  void Arrive(Block block);
  void Leave(Block block, State to);
  void Charge(Bytes bytes);
  void Sample();
  Block Sentinel(bool of_protected) const {
    return static_cast<Block>(tensor_of_.size()) + (of_protected ? 1 : 0);
  }

  const Trace& trace_;
  const ReplayOptions& options_;
  Bytes capacity_ = 0, used_ = 0, peak_ = 0;
  double now_ = 0;
  std::vector<Block> first_;         // per tensor, and one past the last
  std::vector<uint32_t> tensor_of_;  // per block
  std::vector<State> state_;         // per block
  // Per block: the migration lists, each through a sentinel: of the protected tensors and of all
  // others.
  std::vector<Block> newer_, older_;
  std::vector<uint32_t> resident_;                  // per tensor: blocks in state kIn
  mutable std::vector<Block> highest_;              // per tensor: no resident block at or above it
  std::vector<bool> protected_;                     // per tensor
  std::vector<bool> remote_;                        // per tensor
  std::vector<Instance> next_use_;                  // per tensor
  std::set<std::pair<Instance, uint32_t>> by_use_;  // tensors with a resident block
  Engine engines_[2];
  bool recording_ = false;
  std::vector<TransferRun> transfers_;
  std::vector<ResidencySample> residency_;
};

}  // namespace atp::policy
