// SPDX-License-Identifier: Apache-2.0
// A few lines of virtual time for mover tests: lanes, one compute stream, a link with one queue a
// direction. Checks what movers must keep: resident bytes never exceed the capacity, and no launch
// runs while a granule that it touches is away.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "shim/mover.h"

namespace atp::shim {

class FakeWorld : public HintPort {
 public:
  FakeWorld(double bytes_per_ns, uint64_t capacity) : rate_(bytes_per_ns), capacity_(capacity) {
    world_ = this;
  }
  static LaneCalls Calls() {
    return {[](uint32_t lane) { return world_->SetLane(lane); }, [] { return world_->Now(); },
            [](const CUevent* events, uint32_t count, uint64_t deadline) {
              return world_->WaitAny(events, count, deadline);
            }};
  }

  // --- HintPort
  CUresult Evict(unsigned, uint64_t address, uint64_t bytes) override {
    if (fail_always_ || (fail_next_ > 0 && --fail_next_ == 0)) return CUDA_ERROR_UNKNOWN;
    copies_out_beside_fetches += h2d_free_ > Now();
    d2h_free_ = std::max(d2h_free_, Now()) + Cost(bytes);
    clocks_[lane_] = d2h_free_;
    ForEach(address, bytes, [&](uint64_t g) { left_at_[g] = d2h_free_, resident_.erase(g); });
    return CUDA_SUCCESS;
  }
  CUresult Drop(unsigned mover, uint64_t address, uint64_t bytes, bool duplicated) override {
    if (!duplicated) return Evict(mover, address, bytes);
    ++drops;
    clocks_[lane_] += call_ns_;
    ForEach(address, bytes, [&](uint64_t g) { left_at_[g] = Now(), resident_.erase(g); });
    return CUDA_SUCCESS;
  }
  CUresult Fetch(unsigned, uint64_t address, uint64_t bytes, CUevent done) override {
    if (fail_always_) return CUDA_ERROR_UNKNOWN;
    ++fetches[address];
    clocks_[lane_] += call_ns_;
    uint64_t missing = 0;
    ForEach(address, bytes, [&](uint64_t g) { missing += resident_.count(g) == 0 ? kGranule : 0; });
    copies_out_beside_fetches += missing > 0 && d2h_free_ > Now();
    h2d_free_ = std::max(h2d_free_, Now()) + Cost(missing);
    ForEach(address, bytes, [&](uint64_t g) {
      if (left_at_[g] > Now()) ++early_fetches;
      if (resident_.insert(g).second) here_at_[g] = h2d_free_;
    });
    most_resident = std::max<uint64_t>(most_resident, resident_.size() * kGranule);
    times_[done] = h2d_free_;
    return CUDA_SUCCESS;
  }
  CUevent NewEvent() override { return reinterpret_cast<CUevent>(++last_event_); }
  uint64_t NowNs() override { return Now(); }
  uint64_t DoneAtNs(CUevent done) override { return times_[done]; }
  CUresult Record(CUevent event, CUstream, bool) override {
    times_[event] = compute_free_;
    return CUDA_SUCCESS;
  }
  bool Done(CUevent event) override { return times_[event] <= Now(); }
  double Elapsed(CUevent begin, CUevent end) override {
    return (static_cast<double>(times_[end]) - static_cast<double>(times_[begin])) * 1e-9;
  }

  // --- the program
  void StreamWait(CUevent event) { wait_until_ = std::max(wait_until_, times_[event]); }
  void Launch(uint64_t ns, const std::vector<uint64_t>& granule_addresses) {
    clocks_[0] += 1000;  // a launch costs the host a microsecond
    const uint64_t start = std::max({compute_free_, clocks_[0], wait_until_});
    for (uint64_t address : granule_addresses) {
      const uint64_t g = address / kGranule;
      if (resident_.count(g) == 0 || here_at_[g] > start) ++faults;
    }
    compute_free_ = start + ns;
  }
  void MakeResident(uint64_t address, uint64_t bytes) {
    ForEach(address, bytes, [&](uint64_t g) { resident_.insert(g); });
  }
  void Synchronize() { clocks_[0] = std::max(clocks_[0], compute_free_); }
  // Processor time of each call that fetches or drops.
  void SetCallNs(uint64_t ns) { call_ns_ = ns; }
  void FailEvict(int nth) { fail_next_ = nth; }
  void FailAlways() { fail_always_ = true; }
  uint64_t compute_free() const { return compute_free_; }

  std::map<uint64_t, uint64_t> fetches;  // calls by address
  uint64_t drops = 0;                    // left without a copy
  uint64_t copies_out_beside_fetches = 0;
  uint64_t faults = 0, early_fetches = 0, most_resident = 0;

 private:
  uint32_t SetLane(uint32_t lane) {
    const uint64_t now = Now();
    clocks_.try_emplace(lane, now);
    std::swap(lane, lane_);
    return lane;
  }
  uint64_t Now() { return clocks_[lane_]; }
  int WaitAny(const CUevent* events, uint32_t count, uint64_t deadline) {
    int first = -1;
    for (uint32_t i = 0; i < count; ++i) {
      if (first < 0 || times_[events[i]] < times_[events[first]]) first = static_cast<int>(i);
    }
    if (first >= 0 && times_[events[first]] <= deadline) {
      clocks_[lane_] = std::max(Now(), times_[events[first]]);
      return first;
    }
    clocks_[lane_] = std::max(Now(), deadline);
    return -1;
  }
  uint64_t Cost(uint64_t bytes) const {
    return static_cast<uint64_t>(static_cast<double>(bytes) / rate_);
  }
  template <typename Body>
  void ForEach(uint64_t address, uint64_t bytes, Body body) {
    for (uint64_t at = address; at < address + bytes; at += kGranule) body(at / kGranule);
  }

  inline static FakeWorld* world_ = nullptr;
  double rate_;
  uint64_t capacity_;
  uint32_t lane_ = 0;
  std::map<uint32_t, uint64_t> clocks_;
  std::map<CUevent, uint64_t> times_;
  std::map<uint64_t, uint64_t> left_at_, here_at_;
  std::set<uint64_t> resident_;
  uint64_t d2h_free_ = 0, h2d_free_ = 0, compute_free_ = 0, wait_until_ = 0;
  uintptr_t last_event_ = 0;
  int fail_next_ = 0;
  uint64_t call_ns_ = 0;
  bool fail_always_ = false;
};

}  // namespace atp::shim
