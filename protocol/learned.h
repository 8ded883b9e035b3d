// SPDX-License-Identifier: Apache-2.0
// What the shim has learned of a program and atpd keeps for its next run. Guesses, all of it: the
// next process proves each before it acts by it, and nothing in here can make it give data up.
// Values; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace atp::protocol {

inline constexpr uint32_t kLearnedVersion = 1;
// What is longer was not written by us.
inline constexpr uint64_t kMostLearnedBytes = 64u << 20;

struct Fingerprint {
  std::string device;
  uint64_t device_bytes = 0, capacity_bytes = 0;
  std::vector<uint64_t> code;         // ascending
  std::vector<uint64_t> allocations;  // bytes, oldest first
  bool operator==(const Fingerprint&) const = default;
};

struct LearnedTensor {
  uint64_t bytes = 0;               // of the allocation
  uint64_t offset = 0, length = 0;  // of the part that is used together
  uint32_t slot = 0;
  bool operator==(const LearnedTensor&) const = default;
};

struct LearnedLaunch {
  uint64_t signature = 0, identity = 0;
  double seconds = 0;
  std::vector<uint32_t> reads, writes;  // indices of tensors
  bool operator==(const LearnedLaunch&) const = default;
};

struct LearnedPhase {
  std::vector<LearnedLaunch> launches;
  std::vector<LearnedTensor> tensors;
  std::vector<uint64_t> before;
  uint64_t capacity_bytes = 0;
  double best_seconds = 0, plain_seconds = 0, bound_seconds = 0;  // 0 = not known
  uint64_t periods = 0;
  bool operator==(const LearnedPhase&) const = default;
};

// Whoever searches for better choices plans as the shim does (PlanOptions::turnaround_seconds). Of
// a mover: it wakes, calls the driver for what leaves (a granule takes 20 to 90 us by estimates of
// the driver's costs), and the fetch mover's call takes 30 us until its copy begins.
inline constexpr double kTurnaroundSeconds = 100e-6;

inline constexpr uint64_t kNoHeadRoom = 1;

// Choices of the shim that may make a plan faster and never another result. 0 = its own.
struct Tuning {
  uint64_t head_room_bytes = 0;                  // kept free on the device; kNoHeadRoom: nothing
  double duration_spread = 0, call_seconds = 0;  // as policy::PlanOptions has them
  double link_scale = 0;  // so many times as fast as measured the planner takes the link to be
  bool operator==(const Tuning&) const = default;
};

// Of Learned::candidate. atpd offers; the shim tries it on the live job and says how it went.
enum class TrialState : uint32_t { kNone = 0, kOffered = 1, kWon = 2, kLost = 3 };

struct Learned {
  Fingerprint fingerprint;
  std::string command;
  double h2d = 0, d2h = 0, duplex_h2d = 0, duplex_d2h = 0;  // bytes per second; 0 = not known
  std::vector<LearnedPhase> phases;
  Tuning tuning, candidate;
  TrialState trial = TrialState::kNone;
  // atpd's own books: candidates after this one, and those that a live job was no faster by.
  std::vector<Tuning> further, rejected;
  double before_seconds = 0, trial_seconds = 0;  // a period before and during the trial
  uint64_t budget_bytes = 0;                     // of the device, with head-room; 0 = not known
  bool operator==(const Learned&) const = default;
};

std::vector<uint8_t> Write(const Fingerprint& fingerprint);
std::vector<uint8_t> Write(const Learned& learned);

// Takes foreign bytes. False with `error` in words: not whole, of another version, or not sensible
// (an index that leads nowhere, a time that is no number).
bool Read(std::span<const uint8_t> bytes, Fingerprint* fingerprint, std::string* error);
bool Read(std::span<const uint8_t> bytes, Learned* learned, std::string* error);

}  // namespace atp::protocol
