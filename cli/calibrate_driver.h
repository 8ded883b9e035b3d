// SPDX-License-Identifier: Apache-2.0
// The calls of a CUDA driver that `atp calibrate` measures with, by their documented prototypes
// (CUDA driver API manual): cli/ does not include cuda.h. A call that fails throws CommandError,
// which names it. One device, one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace atp::cli {

using DeviceAddress = unsigned long long;
struct DriverStream;
struct DriverEvent;

class CalibrationDriver {
 public:
  enum class Place { kDevice, kHost };

  // `library`: a path or a name for the dynamic linker.
  CalibrationDriver(const std::string& library, int device);
  ~CalibrationDriver();
  CalibrationDriver(const CalibrationDriver&) = delete;
  CalibrationDriver& operator=(const CalibrationDriver&) = delete;

  const std::string& name() const { return name_; }
  uint64_t total_bytes() const { return total_; }
  int version() const { return version_; }
  bool moves_memory() const { return concurrent_; }  // managed memory that comes and goes by pages
  uint64_t FreeBytes();

  DeviceAddress Allocate(uint64_t bytes);
  DeviceAddress AllocateManaged(uint64_t bytes);
  void* AllocateHost(uint64_t bytes);  // pinned
  void Free(DeviceAddress address);
  void FreeHost(void* address);

  // Two streams that do not wait for each other.
  enum class Stream { kFirst, kSecond };
  void CopyToDevice(DeviceAddress to, const void* from, uint64_t bytes, Stream stream);
  void CopyToHost(void* to, DeviceAddress from, uint64_t bytes, Stream stream);
  void Prefetch(DeviceAddress address, uint64_t bytes, Place place, Stream stream);
  // Threads of one block read a byte each: `pages` of them, `stride` apart, in each of `ranges`
  // ranges that lie `apart`.
  void Touch(DeviceAddress address, uint32_t ranges, uint64_t apart, uint32_t pages,
             uint64_t stride);
  // One thread reads at `address` and `count` - 1 times so much farther on, one read after the
  // other. All that is read must be zero.
  void Chase(DeviceAddress address, uint32_t count, uint64_t stride);
  void Zero(DeviceAddress address, uint64_t bytes);
  void Synchronize();

  // Seconds between two events on `stream` around what `work` submits, by the device's clock: of
  // work on that stream until it has ended, of other work until its calls have returned. Nothing
  // else is under way then.
  double Time(Stream stream, const std::function<void()>& work);

 private:
  struct Calls;
  void Check(int result, const char* call) const;
  DriverStream* Of(Stream stream) const { return streams_[static_cast<int>(stream)]; }

  Calls* calls_ = nullptr;
  std::string name_;
  uint64_t total_ = 0;
  int version_ = 0, device_ = 0;
  bool concurrent_ = false;
  void *touch_ = nullptr, *chase_ = nullptr;
  DriverStream* streams_[2] = {};
  DriverEvent* events_[2] = {};
};

}  // namespace atp::cli
