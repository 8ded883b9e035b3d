// SPDX-License-Identifier: Apache-2.0
// Decides, for a program without a period, whether its launches are served (what they lack is
// fetched before them) or left to the driver's page faults, by what launches of the same kind took
// the other way. Serving begins when launches come again and again and still no period is known,
// rests when it does not pay, each time for longer, and rests now and then where it pays little, so
// that the comparison stays fresh. Pure; one thread; bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace atp::policy {

class ServiceTrial {
 public:
  // A launch of this kind comes soon: what is known of it may have left the cache.
  void Expect(uint64_t kind) const { kinds_.Expect(kind); }
  // A launch of this kind is about to be submitted: is it to be served?
  bool Decide(uint64_t kind);
  // What an earlier launch took, its waiting for data included. In any order.
  void Took(uint64_t kind, double seconds, bool served);

  struct Verdict {
    uint64_t windows = 0;   // judged so far
    double ratio = 0;       // of the last one: time / time when left alone
    unsigned given_up = 0;  // times that serving did not pay
  };
  const Verdict& verdict() const { return verdict_; }

 private:
  static constexpr size_t kMostKinds = 1u << 15;
  enum class State : uint8_t { kLearning, kServing, kResting };
  struct Kind {
    uint64_t kind = 0;
    uint32_t timed = 0;
    double alone = 0;  // seconds when left alone
  };
  // All kinds by hash, at most half full. Programs without a period have many thousands, more than
  // a cache holds: so what is asked at each launch is in four bytes. By them one new kind in ten
  // thousand is taken for another, and is never timed.
  class Kinds {
   public:
    // How often it has been seen, this time included, but no more than 3; 0: there is no room.
    unsigned See(uint64_t kind);
    Kind* Find(uint64_t kind);
    void Expect(uint64_t kind) const;
    size_t size() const { return kinds_.size(); }

   private:
    struct Place {
      uint16_t tag : 14 = 0;  // another part of the hash
      uint16_t seen : 2 = 0;
      uint16_t index = 0;  // from 1; 0 = free
    };
    Place& At(size_t at) { return places_[at & (places_.size() - 1)]; }
    void Grow();
    std::vector<Place> places_ = std::vector<Place>(64);
    std::vector<Kind> kinds_;
  };

  uint64_t Window() const;
  void EndWindow();
  void Rest(uint64_t launches);

  State state_ = State::kLearning;
  Kinds kinds_;
  uint64_t launches_ = 0;
  int familiar_ = 0;  // launches of late that were known, less those that were new
  uint64_t rest_until_ = 0, next_rest_ = 0;
  uint64_t in_window_ = 0;
  double took_ = 0, expected_ = 0;
  unsigned slow_ = 0, close_ = 0;  // windows in a row
  Verdict verdict_;
};

}  // namespace atp::policy
