// SPDX-License-Identifier: Apache-2.0
// What a program and the process that holds its simulated card say to each other: frames on a
// stream socket. A frame is a list of questions, the last of which is answered. Both are of one
// build, on one machine: values go as they lie in memory.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/machine/machine.h"

namespace atp::sim {

enum class Op : uint32_t {
  kJoin,
  kNewLane,
  kAllocDevice,
  kFreeDevice,
  kInfo,
  kAddManaged,
  kRemoveManaged,
  kPrefetch,
  kAdvise,
  kDiscard,
  kHostAccess,
  kResidency,
  kNewStream,
  kLegacyStream,
  kDropStream,
  kNewEvent,
  kDropEvent,
  kSubmitKernel,
  kSubmitCopy,
  kSubmitDelay,
  kRecord,
  kWait,
  kDone,
  kEventDone,
  kSyncStream,
  kSyncEvent,
  kSyncDevice,
  kEventTime,
  kWaitAny,
  kHealth,
  kProcesses,
  kKernelBusy,
  kHostFree,
  kStatsJson,
  kSetPeerAccess,
  kDiscardViolations,
};

inline constexpr Lane kNoLane = UINT32_MAX;

struct LaneClock {  // what an answer tells of each lane that its questions came from
  Lane lane;
  Time now;
};

class Writer {
 public:
  template <typename T>
  Writer& Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  template <typename T>
  Writer& PutAll(const std::vector<T>& values) {
    static_assert(std::is_trivially_copyable_v<T>);
    Put<uint64_t>(values.size());
    if (!values.empty()) {
      bytes_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
    }
    return *this;
  }
  Writer& PutText(const std::string& text) {
    Put<uint64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads zeros beyond the end.
class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}
  template <typename T>
  T Get() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    if (bytes_.size() - at_ >= sizeof value) {
      std::memcpy(&value, bytes_.data() + at_, sizeof value);
      at_ += sizeof value;
    } else {
      at_ = bytes_.size();
    }
    return value;
  }
  template <typename T>
  std::vector<T> GetAll() {
    const uint64_t count = Get<uint64_t>();
    if (count > (bytes_.size() - at_) / sizeof(T)) return {};
    std::vector<T> values(count);
    if (count != 0) std::memcpy(values.data(), bytes_.data() + at_, count * sizeof(T));
    at_ += count * sizeof(T);
    return values;
  }
  bool AtEnd() const { return at_ == bytes_.size(); }
  std::string GetText() {
    const std::vector<char> text = GetAll<char>();
    return {text.begin(), text.end()};
  }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

void PutWork(Writer* out, const KernelWork& work);
KernelWork GetWork(Reader* in);

// Frames. False: the other end is gone.
bool SendFrame(int socket, const std::string& bytes);
bool ReceiveFrame(int socket, std::string* bytes);

}  // namespace atp::sim
