// SPDX-License-Identifier: Apache-2.0
#include "shim/shadow.h"

#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <vector>

#include "shim/device.h"
#include "shim/functions.h"
#include "shim/own_calls.h"
#include "shim/own_thread.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

constexpr unsigned kTimes = 2;  // in that many periods
// Every pointer keeps its place in a line of this size: kernels that choose by alignment are not
// proven, and wide accesses need it.
constexpr uint64_t kAlignment = 256;

// Where outputs go in the scratch memory: calls body(output, offset) for each.
template <typename Body>
uint64_t ForEachPlace(const Again& again, Body body) {
  uint64_t end = 0;
  for (const Again::Output& output : again.outputs) {
    const uint64_t at = end + output.address % kAlignment;
    body(output, at);
    end = (at + output.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return end;
}

CUresult CopyToHost(char* to, uint64_t from, uint64_t bytes, CUstream stream, bool per_thread) {
  const auto copy = per_thread ? real().cuMemcpyDtoHAsync_v2_ptsz : real().cuMemcpyDtoHAsync_v2;
  return copy != nullptr ? copy(to, from, bytes, stream) : CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace

uint64_t Shadow::ScratchBytes(uint64_t budget) {
  constexpr uint64_t kMost = 256u << 20;
  return std::clamp(budget / 8 / kGranule * kGranule, kGranule, kMost);
}

Shadow::Shadow(CUcontext context, uint64_t scratch_bytes, bool inline_work)
    : context_(context), scratch_bytes_(scratch_bytes), inline_(inline_work) {}

template <typename Work>
void Shadow::Do(const char* name, Work work) {
  if (inline_) return work();
  const bool started = StartOwnThread(name, [context = context_, work = std::move(work)] {
    real().cuCtxSetCurrent(context);
    const Relaxed relaxed;
    work();
  });
  if (!started) Off("there is no thread for it");
}

void Shadow::Off(std::string why) {
  off_ = std::move(why);
  state_ = State::kOff;
}

void Shadow::Expect(const Repeatable& repeatable) {
  if (state_ != State::kNew && state_ != State::kResting) return;
  const bool open = std::any_of(repeatable.again.begin(), repeatable.again.end(),
                                [&](const Again& again) { return IsOpen(again); });
  if (!open) return;
  state_ = State::kPreparing;
  contexts_gone_ = ContextsForgotten();
  Do("atp-shadow", [this] {
    const char* why = Prepare();
    if (why != nullptr) return Off(why);
    state_ = State::kIdle;
  });
}

// The host's memory is ours, not the driver's, so that it outlives a context that the program
// destroys while it is being compared. Null: it is there.
const char* Shadow::Prepare() {
  const WithContext current(context_);
  const Relaxed relaxed;
  if (real().cuMemHostRegister_v2 == nullptr) return "the driver locks no memory";
  CUdeviceptr scratch = 0;
  if (real().cuMemAlloc_v2(&scratch, scratch_bytes_) != CUDA_SUCCESS) {
    return "the driver gives no scratch memory";
  }
  scratch_ = scratch;
  if (host_ != nullptr) return nullptr;  // from the last time, and the event too
  void* host =
      mmap(nullptr, 2 * scratch_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (host == MAP_FAILED) return "the system gives no memory to compare in";
  if (real().cuMemHostRegister_v2(host, 2 * scratch_bytes_, 0) != CUDA_SUCCESS) {
    return "the driver does not lock the memory to compare in";
  }
  host_ = static_cast<char*>(host);
  if (real().cuEventCreate(&done_, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return "the driver gives no event";
  }
  return nullptr;
}

void Shadow::Rest() {
  Poll();
  if (state_ != State::kIdle) return;
  state_ = State::kPreparing;
  Do("atp-shadow", [this] {
    const WithContext current(context_);
    const Relaxed relaxed;
    if (contexts_gone_ != ContextsForgotten())
      return Off("the program has changed the device's context");
    if (real().cuMemFree_v2(scratch_) != CUDA_SUCCESS)
      return Off("the driver takes no memory back");
    state_ = State::kResting;
  });
}

bool Shadow::Fits(const Again& again) const {
  return ForEachPlace(again, [](const Again::Output&, uint64_t) {}) <= scratch_bytes_;
}

bool Shadow::IsOpen(const Again& again) const {
  if (retired_.count(again.kind) > 0 || !Fits(again)) return false;
  const auto passed = passed_.find(again.key);
  return passed == passed_.end() || passed->second.times < kTimes;
}

bool Shadow::Wants(const Again* again, const LaunchView& launch, uint64_t period) {
  if (again == nullptr || launch.capturing) return false;
  Poll();
  if (state_ != State::kIdle || !IsOpen(*again)) return false;
  const auto passed = passed_.find(again->key);
  if (passed != passed_.end() && passed->second.period == period) return false;
  if (!IsLaunchOf(*again, launch)) return false;
  period_ = period;
  return true;
}

void Shadow::Take(const Again& again) {
  now_ = again;
  ++runs_;
  state_ = State::kSubmitting;
}

// What follows in the stream may change what the launch read or wrote, so all of it is submitted
// here; that the program's thread has not returned from the launch yet keeps other streams from
// waiting for less.
CUresult Shadow::RunAgain(const LaunchView& launch) {
  std::vector<char> arguments = now_.arguments;
  ForEachPlace(now_, [&](const Again::Output& output, uint64_t at) {
    const uint64_t pointer = scratch_ + at - static_cast<uint64_t>(output.begin);
    memcpy(&arguments[output.pointer_at], &pointer, sizeof pointer);
  });
  std::vector<void*> parameters;
  for (const Parameter& p : now_.info->parameters) parameters.push_back(&arguments[p.offset]);
  const auto submit = launch.per_thread ? real().cuLaunchKernel_ptsz : real().cuLaunchKernel;
  if (submit == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  auto* function = static_cast<CUfunction>(const_cast<void*>(now_.info->handle));
  const uint32_t *grid = now_.shape.grid, *block = now_.shape.block;
  CUresult result = submit(function, grid[0], grid[1], grid[2], block[0], block[1], block[2],
                           now_.shape.shared_bytes, launch.stream, parameters.data(), nullptr);
  ForEachPlace(now_, [&](const Again::Output& output, uint64_t at) {
    for (const bool live : {false, true}) {
      if (result != CUDA_SUCCESS) return;
      result = CopyToHost(host_ + (live ? scratch_bytes_ : 0) + at,
                          live ? output.address : scratch_ + at, output.bytes, launch.stream,
                          launch.per_thread);
    }
  });
  if (result != CUDA_SUCCESS) return result;
  const auto record = launch.per_thread && real().cuEventRecord_ptsz != nullptr
                          ? real().cuEventRecord_ptsz
                          : real().cuEventRecord;
  return record(done_, launch.stream);
}

void Shadow::Submit(const LaunchView& launch) {
  CUcontext current = nullptr;
  real().cuCtxGetCurrent(&current);
  if (current != context_ || contexts_gone_ != ContextsForgotten()) {
    return Off("the program has changed the device's context");
  }
  const Relaxed relaxed;
  const CUresult result = RunAgain(launch);
  if (result != CUDA_SUCCESS) {
    return Off("the driver refuses: error " + std::to_string(static_cast<int>(result)));
  }
  state_ = State::kRunning;
  if (inline_) return;
  Do("atp-shadow", [this] {
    if (real().cuEventSynchronize(done_) != CUDA_SUCCESS) {
      return Off("what ran again did not end");
    }
    Compare();
  });
}

void Shadow::Compare() {
  differs_at_ = kSame;
  uint64_t before = 0;
  ForEachPlace(now_, [&](const Again::Output& output, uint64_t at) {
    const char *again = host_ + at, *live = host_ + scratch_bytes_ + at;
    if (differs_at_ == kSame && memcmp(again, live, output.bytes) != 0) {
      differs_at_ = before + static_cast<uint64_t>(
                                 std::mismatch(again, again + output.bytes, live).first - again);
    }
    before += output.bytes;
  });
  state_ = State::kCompared;
}

void Shadow::Poll() {
  if (inline_ && state_ == State::kRunning) {
    const Relaxed relaxed;
    if (real().cuEventQuery(done_) == CUDA_SUCCESS) Compare();
  }
  if (state_ != State::kCompared) return;
  const char* name = now_.info->name != nullptr ? now_.info->name : "-";
  if (differs_at_ == kSame) {
    Times& passed = passed_[now_.key];
    ++passed.times;
    passed.period = period_;
    passed.kind = now_.kind;
  } else {
    const std::string why = std::string(name) + ": byte " + std::to_string(differs_at_) + " of " +
                            std::to_string(now_.WrittenBytes()) + " came out otherwise";
    ATP_LOG_WARN("%s when the launch ran again: launches of its kind are left alone", why.c_str());
    retired_[now_.kind] = why;
  }
  state_ = State::kIdle;
}

Shadow::Result Shadow::Of(const Repeatable& repeatable) const {
  Result result;
  if (state_ == State::kOff) result.off = off_;
  for (const Again& again : repeatable.again) {
    const auto retired = retired_.find(again.kind);
    const auto passed = passed_.find(again.key);
    if (retired != retired_.end()) {
      ++result.retired[retired->second];
    } else if (!Fits(again)) {
      ++result.too_large;
    } else if (passed == passed_.end() || passed->second.times < kTimes) {
      ++result.open;
    } else {
      ++result.passed;
      result.passed_bytes += again.WrittenBytes();
    }
  }
  return result;
}

std::unordered_set<uint64_t> Shadow::Passed() const {
  std::unordered_set<uint64_t> keys;
  for (const auto& [key, passed] : passed_) {
    if (passed.times >= kTimes && retired_.count(passed.kind) == 0) keys.insert(key);
  }
  return keys;
}

}  // namespace atp::shim
