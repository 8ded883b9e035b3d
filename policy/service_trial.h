// SPDX-License-Identifier: Apache-2.0
// Decides, for a program without a period, whether its launches are served (what they lack is
// fetched before them) or left to the driver's page faults, by what launches of the same kind took
// the other way. Serving begins when launches come again and again and still no period is known,
// rests when it does not pay, each time for longer, and rests now and then where it pays little, so
// that the comparison stays fresh. Pure; one thread; bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

namespace atp::policy {

class ServiceTrial {
 public:
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
    uint32_t seen = 0, timed = 0;
    double alone = 0;  // seconds when left alone
  };

  uint64_t Window() const;
  void EndWindow();
  void Rest(uint64_t launches);

  State state_ = State::kLearning;
  std::unordered_map<uint64_t, Kind> kinds_;
  uint64_t launches_ = 0;
  int familiar_ = 0;  // launches of late that were known, less those that were new
  uint64_t rest_until_ = 0, next_rest_ = 0;
  uint64_t in_window_ = 0;
  double took_ = 0, expected_ = 0;
  unsigned slow_ = 0, close_ = 0;  // windows in a row
  Verdict verdict_;
};

}  // namespace atp::policy
