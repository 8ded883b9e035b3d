// SPDX-License-Identifier: Apache-2.0
// Where the shim believes each granule of managed memory to be: no driver call tells. Wrong beliefs
// cost time only.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "shim/loop.h"
#include "shim/schedule.h"

namespace atp::shim {

enum class Where : uint8_t {
  kUnknown,
  kDevice,
  kHost,
  kHostAdvised,  // on the host, ReadMostly: the next fetch leaves the copy there valid
  kBoth,         // on the device, and the copy on the host is valid
};

class Residency {
 public:
  void Add(Allocation* allocation);
  void Remove(const Allocation* allocation);
  // `clean`: by the way that ReadMostly opens.
  void MovedToHost(const Allocation* allocation, uint64_t offset, uint64_t bytes, bool clean);
  void MovedToDevice(const Allocation* allocation, uint64_t offset, uint64_t bytes);
  void ForgetAll();
  // True when the whole range is known to have a valid copy on the host.
  bool IsDuplicated(const Allocation* allocation, uint64_t offset, uint64_t bytes) const;
  // ReadMostly has ended: the driver has kept the copies on the host.
  void Collapse(const Allocation* allocation);

  const std::unordered_map<uint64_t, Allocation*>& live() const { return live_; }
  // What has to move so that residency is as a period of `schedule` expects it at its start: what
  // the period touches is on the device, but for what is out at its start, and nothing else is.
  struct Approach {
    std::vector<Action> evict;  // by address; before the period starts
    std::vector<Action> fetch;  // each before the launch that touches it first
    uint64_t resident = 0;      // bytes on the device between the two, `in_place` ones counted
  };
  Approach ToStartOf(const Schedule& schedule, uint64_t piece_bytes) const;

 private:
  using Granules = std::vector<Where>;
  template <typename Change>
  void ForEach(const Allocation* allocation, uint64_t offset, uint64_t bytes, Change change);
  // Appends the granules of a range that should be at `where` and are not believed to be, joined to
  // pieces.
  void Missing(Allocation* allocation, uint64_t offset, uint64_t bytes, const Granules& want,
               Where where, uint32_t position, uint64_t piece_bytes,
               std::vector<Action>* out) const;

  std::unordered_map<uint64_t, Allocation*> live_;
  std::unordered_map<uint64_t, Granules> where_;
};

}  // namespace atp::shim
