// SPDX-License-Identifier: Apache-2.0
// What people write by hand when a model does not fit: the optimizer's moments of some parameters
// live in pinned host memory and pass through a few buffers on the device, loaded and stored on
// streams of their own beside the computation. The first buffers are loaded during the forward
// pass; a parameter's moments are used as soon as its gradient is there, in the backward pass.
#pragma once

#include <algorithm>
#include <vector>

#include "examples/support/device.h"
#include "examples/transformer/config.h"

namespace example {

class MomentOffload {
 public:
  // What the program has on the device is to be `budget` bytes at most.
  MomentOffload(size_t budget, int slots) : budget_(budget), most_slots_(slots) {}

  // Decides whose moments are offloaded: the first in the order in which they will be updated.
  // `others`: bytes on the device besides moments.
  void Choose(const std::vector<ParameterShape>& shapes, const std::vector<size_t>& order,
              size_t others) {
    place_.assign(shapes.size(), kOnDevice);
    size_t slot = 0, needed = others;
    for (const ParameterShape& shape : shapes) needed += Bytes(shape);
    for (const size_t p : order) slot = std::max(slot, Bytes(shapes[p]));
    for (const size_t p : order) {
      // Small ones are not worth a copy.
      if (needed + most_slots_ * slot <= budget_ || Bytes(shapes[p]) < slot / 8) continue;
      place_[p] = int(offloaded_.size());
      offloaded_.push_back(p);
      needed -= Bytes(shapes[p]);
    }
    if (needed + most_slots_ * slot > budget_) Options::Refuse("--offload is too small");
    slot_values_ = slot / sizeof(float) / 2;
    slots_.resize(std::min(most_slots_, offloaded_.size()));
  }

  bool Takes(size_t parameter) const { return place_[parameter] != kOnDevice; }

  void Allocate(const std::vector<ParameterShape>& shapes, DeviceMemory* memory) {
    CHECK_CUDA(cudaStreamCreateWithFlags(&load_, cudaStreamNonBlocking));
    CHECK_CUDA(cudaStreamCreateWithFlags(&store_, cudaStreamNonBlocking));
    for (Slot& slot : slots_) {
      slot.moments = memory->Allocate<float>("offload buffer", 2 * slot_values_);
      for (cudaEvent_t* event : {&slot.loaded, &slot.updated, &slot.stored}) {
        CHECK_CUDA(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
      }
    }
    for (const size_t p : offloaded_) {
      host_.push_back(nullptr);
      CHECK_CUDA(cudaMallocHost(reinterpret_cast<void**>(&host_.back()), Bytes(shapes[p])));
      std::fill_n(host_.back(), 2 * shapes[p].count, 0.0f);
      counts_.push_back(shapes[p].count);
    }
    for (size_t k = 0; k < slots_.size(); ++k) Load(k);
  }

  // The two moments of a parameter; the default stream waits for them.
  std::pair<float*, float*> Take(size_t parameter) {
    const size_t k = place_[parameter];
    Slot& slot = SlotOf(k);
    CHECK_CUDA(cudaStreamWaitEvent(nullptr, slot.loaded, 0));
    return {slot.moments, slot.moments + counts_[k]};
  }
  // The default stream has been given their update: they go back, and the next ones come.
  void Give(size_t parameter) {
    const size_t k = place_[parameter];
    Slot& slot = SlotOf(k);
    CHECK_CUDA(cudaEventRecord(slot.updated, nullptr));
    CHECK_CUDA(cudaStreamWaitEvent(store_, slot.updated, 0));
    CHECK_CUDA(cudaMemcpyAsync(host_[k], slot.moments, 2 * counts_[k] * sizeof(float),
                               cudaMemcpyDeviceToHost, store_));
    CHECK_CUDA(cudaEventRecord(slot.stored, store_));
    CHECK_CUDA(cudaStreamWaitEvent(load_, slot.stored, 0));
    Load(NextOf(k));
  }

 private:
  struct Slot {
    float* moments = nullptr;
    cudaEvent_t loaded = nullptr, updated = nullptr, stored = nullptr;
  };
  static constexpr int kOnDevice = -1;

  static size_t Bytes(const ParameterShape& shape) { return 2 * shape.count * sizeof(float); }
  Slot& SlotOf(size_t k) { return slots_[k % slots_.size()]; }
  // The next one to use the slot of `k`: in this step, or the first in the next one.
  size_t NextOf(size_t k) const {
    const size_t next = k + slots_.size();
    return next < offloaded_.size() ? next : k % slots_.size();
  }
  void Load(size_t k) {
    Slot& slot = SlotOf(k);
    CHECK_CUDA(cudaMemcpyAsync(slot.moments, host_[k], 2 * counts_[k] * sizeof(float),
                               cudaMemcpyHostToDevice, load_));
    CHECK_CUDA(cudaEventRecord(slot.loaded, load_));
  }

  const size_t budget_, most_slots_;
  std::vector<int> place_;         // by parameter: number among those offloaded
  std::vector<size_t> offloaded_;  // parameters
  std::vector<size_t> counts_;     // values of each
  std::vector<float*> host_;
  std::vector<Slot> slots_;
  size_t slot_values_ = 0;
  cudaStream_t load_ = nullptr, store_ = nullptr;
};

}  // namespace example
