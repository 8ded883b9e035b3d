// SPDX-License-Identifier: Apache-2.0
// Each figure is a difference of two measurements that are alike but for it, so that what is the
// same in both falls out: the events, the start of a copy, the latency of a launch.
#include "cli/calibrate_measure.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "cli/error.h"
#include "cli/size.h"

namespace atp::cli {
namespace {

using Driver = CalibrationDriver;
using Stream = Driver::Stream;
using Place = Driver::Place;

constexpr uint64_t kBlock = 2u << 20, kPage = 4096, kRegion = 64u << 10;
constexpr uint64_t kLeast = 8 * kBlock, kMost = 32 * kBlock;  // memory for one measurement
constexpr double kMicroseconds = 1e6;

class Calibration {
 public:
  Calibration(Driver* driver, const CalibrationLimits& limits, uint64_t bytes)
      : driver_(*driver), repeats_(limits.repeats), bytes_(bytes) {}

  policy::MeasuredMachine All() {
    machine_.device = driver_.name();
    machine_.device_bytes = driver_.total_bytes();
    machine_.driver = driver_.version();
    Link();
    if (driver_.moves_memory()) {
      managed_ = driver_.AllocateManaged(bytes_);
      Prefetches();
      Faults();
      driver_.Free(managed_);
    }
    return machine_;
  }

 private:
  // The middle one of several; `before` is not part of it.
  double Middle(Stream stream, const std::function<void()>& before,
                const std::function<void()>& work) {
    std::vector<double> seconds;
    for (int i = 0; i < repeats_; ++i) {
      before();
      seconds.push_back(driver_.Time(stream, work));
    }
    std::sort(seconds.begin(), seconds.end());
    return seconds[seconds.size() / 2];
  }

  // Bytes per second, from two sizes.
  template <typename Copy>
  double RateOf(uint64_t most, Copy copy) {
    const uint64_t small = most / 4, large = most;
    const double more = copy(large) - copy(small);
    if (more <= 0) throw CommandError(1, "copies of different sizes take the same time");
    return static_cast<double>(large - small) / more;
  }

  void Link() {
    const DeviceAddress device[] = {driver_.Allocate(bytes_), driver_.Allocate(bytes_)};
    void* host[] = {driver_.AllocateHost(bytes_), driver_.AllocateHost(bytes_)};
    const auto in = [&](uint64_t bytes, Stream stream) {
      driver_.CopyToDevice(device[0], host[0], bytes, stream);
    };
    const auto out = [&](uint64_t bytes, Stream stream) {
      driver_.CopyToHost(host[1], device[1], bytes, stream);
    };
    const auto alone = [&](const auto& copy) {
      return RateOf(bytes_, [&](uint64_t bytes) {
        return Middle(
            Stream::kFirst, [] {}, [&] { copy(bytes, Stream::kFirst); });
      });
    };
    machine_.link.h2d = alone(in);
    machine_.link.d2h = alone(out);
    // The other direction is busy from before the measured copy until after it: it has four times
    // as much to do, and no link is three times as fast one way as the other.
    const auto beside = [&](const auto& copy, const auto& other) {
      return RateOf(bytes_, [&](uint64_t bytes) {
        return Middle(
            Stream::kFirst,
            [&] {
              for (int i = 0; i < 4; ++i) other(bytes_, Stream::kSecond);
            },
            [&] { copy(bytes, Stream::kFirst); });
      });
    };
    machine_.link.duplex_h2d = beside(in, out);
    machine_.link.duplex_d2h = beside(out, in);
    for (const DeviceAddress address : device) driver_.Free(address);
    for (void* address : host) driver_.FreeHost(address);
  }

  void Move(uint64_t bytes, Place place) {
    driver_.Prefetch(managed_, bytes, place, Stream::kSecond);
    driver_.Synchronize();
  }
  // What the calling thread spends on a prefetch of so many bytes to the device.
  double CallSeconds(uint64_t bytes, const std::function<void()>& before) {
    return Middle(Stream::kFirst, before,
                  [&] { driver_.Prefetch(managed_, bytes, Place::kDevice, Stream::kSecond); });
  }
  // Of one more block, where `before` makes them what they are. Ranges of several blocks are walked
  // in another way than one block.
  double CallSecondsPerBlock(const std::function<void()>& before) {
    const double more = CallSeconds(bytes_, before) - CallSeconds(2 * kBlock, before);
    return std::max(0.0, more / static_cast<double>(bytes_ / kBlock - 2));
  }

  void Prefetches() {
    const auto fresh = [&] {
      driver_.Free(managed_);
      managed_ = driver_.AllocateManaged(bytes_);
    };
    const auto from_host = [&] { Move(bytes_, Place::kHost); };
    const auto resident = [&] { Move(bytes_, Place::kDevice); };
    const double block = CallSecondsPerBlock(fresh), touch = CallSecondsPerBlock(resident);
    const double events = Middle(
        Stream::kFirst, [] {}, [] {});
    const double call = CallSeconds(2 * kBlock, resident) - 2 * touch - events;
    const double unmap = CallSecondsPerBlock(from_host) - block;
    // Parts of one block, so that its copy and its mapping cannot overlap those of others.
    const auto leave = [&](uint64_t bytes) {
      return Middle(Stream::kFirst, resident,
                    [&] { driver_.Prefetch(managed_, bytes, Place::kHost, Stream::kSecond); });
    };
    const double leaves = (leave(kBlock) - leave(kBlock / 4)) / 0.75;
    const double map = leaves - block - static_cast<double>(kBlock) / machine_.link.d2h;
    Set(&machine_.prefetch_call_us, call);
    Set(&machine_.prefetch_block_us, block);
    Set(&machine_.prefetch_touch_us, touch);
    Set(&machine_.host_unmap_us, unmap);
    Set(&machine_.host_map_us, map);
  }

  // A launch that touches so many pages, all in one region that the driver brings whole, in each of
  // so many blocks on the host. What else the kernel does goes on while its faults are served.
  double FaultSeconds(uint32_t blocks, uint32_t pages) {
    return Middle(
        Stream::kFirst, [&] { Move(bytes_, Place::kHost); },
        [&] { driver_.Touch(managed_, blocks, kBlock, pages, kPage); });
  }
  // A launch that faults so many times, each time in another block, one fault after the other.
  double ChaseSeconds(uint32_t blocks) {
    return Middle(
        Stream::kFirst, [&] { Move(bytes_, Place::kHost); },
        [&] { driver_.Chase(managed_, blocks, kBlock); });
  }

  void Faults() {
    constexpr uint32_t kBlocks = kLeast / kBlock, kPages = kRegion / kPage;
    static_assert(kBlocks * kPages <= 256, "one batch of the driver");
    driver_.Zero(managed_, bytes_);
    const double one = FaultSeconds(1, 1);
    const double blocks = FaultSeconds(kBlocks, 1), all = FaultSeconds(kBlocks, kPages);
    const double fault = (all - blocks) / (kBlocks * (kPages - 1));
    const double unmap =
        machine_.host_unmap_us / kMicroseconds * static_cast<double>(kRegion) / kBlock;
    const double block = (blocks - one) / (kBlocks - 1) - fault - unmap;
    const double copy = static_cast<double>(kRegion) / machine_.link.h2d;
    const double batch = (ChaseSeconds(kBlocks) - ChaseSeconds(1)) / (kBlocks - 1);
    Set(&machine_.fault_us, fault);
    Set(&machine_.fault_block_us, block);
    Set(&machine_.fault_batch_us, batch - fault - block - unmap - copy);
  }

  // A difference that is not above zero was not measured.
  static void Set(double* figure, double seconds) {
    *figure = std::max(0.0, seconds * kMicroseconds);
  }

  Driver& driver_;
  const int repeats_;
  const uint64_t bytes_;
  DeviceAddress managed_ = 0;
  policy::MeasuredMachine machine_;
};

}  // namespace

policy::MeasuredMachine Measure(CalibrationDriver* driver, const CalibrationLimits& limits) {
  const uint64_t share = driver->FreeBytes() / 8 / 2;  // two buffers at a time
  const uint64_t bytes = std::min(kMost, share / kBlock * kBlock);
  if (bytes < kLeast) {
    throw CommandError(1, "too little device memory is free to measure safely: " +
                              FormatBytes(16 * kLeast) + " are needed");
  }
  return Calibration(driver, limits, bytes).All();
}

}  // namespace atp::cli
