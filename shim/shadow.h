// SPDX-License-Identifier: Apache-2.0
// Whether launches that may run again (repeatable.h) do give the same bits: each is run a second
// time, directly behind the first on its stream, with its outputs in scratch memory, in two periods
// at least, and both outputs are compared on the host. What differs is retired for good, and so are
// all launches of that kind. The program waits for none of it, and no memory of its is written.
//
// Under the loop's lock, but for Submit. At most one launch at a time is being looked at.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "shim/loop.h"
#include "shim/repeatable.h"

namespace atp::shim {

class Shadow {
 public:
  // Device memory that it takes from a budget; twice as much of the host's is page-locked.
  static uint64_t ScratchBytes(uint64_t budget);

  // `inline_work`: the program's thread does all of it, where that takes no time (lane executor).
  Shadow(CUcontext context, uint64_t scratch_bytes, bool inline_work);
  ~Shadow() = delete;  // threads of ours use it until the process ends

  // Some launch of these has still to be looked at: the memory for it is asked for.
  void Expect(const Repeatable& repeatable);
  // Nothing is open for now: the device's memory is given back, until Expect asks for it again.
  void Rest();
  uint64_t bytes() const { return state_ == State::kResting ? 0 : scratch_bytes_; }
  // It should run again after this launch, if that is what it was. `period`: any number that is
  // another one in another period.
  bool Wants(const Again* again, const LaunchView& launch, uint64_t period);
  void Take(const Again& again);  // after Wants, with the launch submitted; Submit has to follow
  void Submit(const LaunchView& launch);  // without the lock
  bool submitting() const { return state_ == State::kSubmitting; }
  void Poll();  // takes note of what has been compared

  struct Result {
    uint64_t passed = 0, passed_bytes = 0;    // launches of a period, and what they write
    uint64_t open = 0;                        // not looked at often enough
    uint64_t too_large = 0;                   // write more than the scratch memory takes
    std::map<std::string, uint64_t> retired;  // launches by reason
    std::string off;                          // not empty: nothing is looked at any more, and why
  };
  Result Of(const Repeatable& repeatable) const;
  // Again::key of those that have been looked at often enough, but for kinds that are retired.
  std::unordered_set<uint64_t> Passed() const;
  uint64_t runs() const { return runs_; }

 private:
  enum class State : uint8_t {
    kNew,
    kPreparing,
    kIdle,
    kSubmitting,
    kRunning,
    kCompared,
    kResting,
    kOff
  };
  struct Times {
    unsigned times = 0;
    uint64_t period = 0;  // of the last time
    uint64_t kind = 0;
  };

  template <typename Work>
  void Do(const char* name, Work work);
  const char* Prepare();
  bool IsOpen(const Again& again) const;
  bool Fits(const Again& again) const;
  CUresult RunAgain(const LaunchView& launch);
  void Compare();
  void Off(std::string why);

  const CUcontext context_;
  const uint64_t scratch_bytes_;
  const bool inline_;
  std::atomic<State> state_{State::kNew};
  std::string off_;  // why; written before kOff

  uint64_t scratch_ = 0;  // on the device
  char* host_ = nullptr;  // twice as much
  CUevent done_ = nullptr;
  uint32_t contexts_gone_ = 0;  // ContextsForgotten when the memory was given

  Again now_;  // the launch that is being looked at
  uint64_t period_ = 0;
  uint64_t differs_at_ = 0;  // byte of its outputs, one behind the other; kSame: nowhere
  static constexpr uint64_t kSame = UINT64_MAX;
  uint64_t runs_ = 0;
  std::unordered_map<uint64_t, Times> passed_;         // by Again::key
  std::unordered_map<uint64_t, std::string> retired_;  // by Again::kind: why
};

}  // namespace atp::shim
