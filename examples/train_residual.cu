// SPDX-License-Identifier: Apache-2.0
// Trains a residual network of fully connected layers, with its memory handled as by a framework:
// activations are asked for in the forward pass and given back in the backward pass, gradients of
// weights live from the backward pass to the next step. --allocator says who serves them
// (support/allocators.h). One stream. Prints the loss of each iteration and a checksum of the final
// weights, which is the same to the bit for every allocator.
#include <cmath>
#include <cstdio>
#include <memory>
#include <vector>

#include "examples/support/allocators.h"
#include "examples/support/blocks.cuh"
#include "examples/support/gemm.cuh"
#include "examples/support/training.h"

namespace {

using namespace example;  // NOLINT

constexpr int kClasses = 64;

// One tensor of the allocator, for as long as it lives.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Allocator* allocator, size_t count)
      : allocator_(allocator),
        bytes_(count * sizeof(float)),
        data_(static_cast<float*>(allocator->Allocate(bytes_))) {}
  Tensor(Tensor&& other) noexcept { *this = std::move(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Tensor() { Reset(); }
  void Reset() {
    if (data_ != nullptr) allocator_->Free(data_, bytes_);
    data_ = nullptr;
  }
  float* data() const { return data_; }

 private:
  Allocator* allocator_ = nullptr;
  size_t bytes_ = 0;
  float* data_ = nullptr;
};

__global__ void Rectify(const float* in, float* out, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out[i] = fmaxf(in[i], 0.0f);
}

__global__ void RectifyBackward(const float* in, const float* d_out, float* d_in, size_t count) {
  const size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) d_in[i] = in[i] > 0 ? d_out[i] : 0.0f;
}

__global__ void DrawLabels(int* labels, int count, uint32_t seed) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) labels[i] = int(Mix(seed ^ Mix(uint32_t(i))) % kClasses);
}

struct Settings {
  long blocks = 8, width = 256, batch = 64, iterations = 10, seed = 1, arena = 1024;
  std::string allocator = "plain";
};

Settings ParseSettings(int argc, char** argv) {
  Settings s;
  Options options("trains a residual network, with its memory handled as by a framework");
  options.Add("--blocks", &s.blocks, 1, 1000, "residual blocks of two layers");
  options.Add("--width", &s.width, 4, 65536, "width of the network; inside a block four times it");
  options.Add("--batch", &s.batch, 1, 65536, "examples per iteration");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "training steps");
  options.Add("--seed", &s.seed, 0, 2147483647, "seed of weights and examples");
  options.Add("--allocator", &s.allocator, "plain, caching, expandable, async or arena");
  options.Add("--arena", &s.arena, 1, 1 << 20, "MiB of the arena");
  options.Parse(argc, argv);
  return s;
}

class Network {
 public:
  Network(const Settings& s, Allocator* allocator)
      : s_(s), rows_(int(s.batch)), width_(int(s.width)), allocator_(allocator) {
    for (long b = 0; b < s.blocks; ++b) {
      AddParameter(size_t(width_) * 4 * width_, 1.0f / std::sqrt(float(width_)));
      AddParameter(4 * size_t(width_), 0);
      AddParameter(4 * size_t(width_) * width_, 0.5f / std::sqrt(4.0f * float(width_)));
      AddParameter(size_t(width_), 0);
    }
    AddParameter(size_t(width_) * kClasses, 1.0f / std::sqrt(float(width_)));
    losses_ = Make(rows_);
    loss_ = Make(1);
  }

  // One step: the loss is on the device when its work is done.
  void Step(long iteration) {
    for (Parameter& p : parameters_) p.gradient.Reset();
    std::vector<Block> tape(s_.blocks);
    Tensor x = Make(rows_ * size_t(width_));
    Tensor labels = Make(rows_);
    const auto seed = Mix(uint32_t(s_.seed) + Mix(uint32_t(iteration % 4)));
    Initialise<<<Blocks(rows_ * size_t(width_), kFlatThreads), kFlatThreads>>>(
        x.data(), rows_ * size_t(width_), seed, 1.0f, 0);
    auto* targets = reinterpret_cast<int*>(labels.data());
    DrawLabels<<<Blocks(rows_, kFlatThreads), kFlatThreads>>>(targets, rows_, seed);
    for (long b = 0; b < s_.blocks; ++b) x = Forward(b, std::move(x), &tape[b]);
    Tensor d = Head(x, targets);
    for (long b = s_.blocks - 1; b >= 0; --b) d = Backward(b, std::move(d), &tape[b]);
    CHECK_CUDA(cudaGetLastError());
  }

  void Update(const Momentum& momentum) {
    for (Parameter& p : parameters_) {
      MomentumUpdate<<<Blocks(p.count, kFlatThreads), kFlatThreads>>>(
          p.weights.data(), p.gradient.data(), p.velocity.data(), p.count, momentum);
    }
    CHECK_CUDA(cudaGetLastError());
  }

  float Loss() const { return ReadBack(loss_.data(), 1)[0]; }
  std::vector<float> Weights(size_t p) const {
    return ReadBack(parameters_[p].weights.data(), parameters_[p].count);
  }
  size_t parameters() const { return parameters_.size(); }

 private:
  struct Parameter {
    size_t count = 0;
    Tensor weights, velocity, gradient;
  };
  struct Block {  // what the backward pass needs
    Tensor in, up, rectified;
  };

  Tensor Make(size_t count) { return Tensor(allocator_, count); }
  Parameter& Of(long block, int which) { return parameters_[block * 4 + which]; }

  void AddParameter(size_t count, float scale) {
    Parameter p{count, Make(count), Make(count), {}};
    Initialise<<<Blocks(count, kFlatThreads), kFlatThreads>>>(
        p.weights.data(), count, Mix(uint32_t(s_.seed) * 1000003u + uint32_t(parameters_.size())),
        scale, 0);
    CHECK_CUDA(cudaMemset(p.velocity.data(), 0, count * sizeof(float)));
    parameters_.push_back(std::move(p));
  }

  // in + W2 rectify(W1 in)
  Tensor Forward(long b, Tensor in, Block* tape) {
    const size_t wide = size_t(rows_) * 4 * width_;
    tape->in = std::move(in);
    tape->up = Make(wide);
    tape->rectified = Make(wide);
    Tensor out = Make(size_t(rows_) * width_);
    RunGemm<false, false>(tape->in.data(), Of(b, 0).weights.data(), tape->up.data(), rows_,
                          4 * width_, width_, Of(b, 1).weights.data());
    Rectify<<<Blocks(wide, kFlatThreads), kFlatThreads>>>(tape->up.data(), tape->rectified.data(),
                                                          wide);
    RunGemm<false, false>(tape->rectified.data(), Of(b, 2).weights.data(), out.data(), rows_,
                          width_, 4 * width_, Of(b, 3).weights.data(), tape->in.data());
    return out;
  }

  // Gradient of the last block's output.
  Tensor Head(const Tensor& x, const int* targets) {
    Parameter& head = parameters_.back();
    Tensor logits = Make(size_t(rows_) * kClasses);
    RunGemm<false, false>(x.data(), head.weights.data(), logits.data(), rows_, kClasses, width_);
    CrossEntropy<<<rows_, kRowThreads>>>(logits.data(), targets, losses_.data(), rows_, kClasses);
    Mean<<<1, kRowThreads>>>(losses_.data(), loss_.data(), rows_);
    head.gradient = Make(head.count);
    RunGemm<true, false>(x.data(), logits.data(), head.gradient.data(), width_, kClasses, rows_);
    Tensor d = Make(size_t(rows_) * width_);
    RunGemm<false, true>(logits.data(), head.weights.data(), d.data(), rows_, width_, kClasses);
    return d;
  }

  // Takes the gradient of the block's output, gives that of its input.
  Tensor Backward(long b, Tensor d_out, Block* tape) {
    const size_t wide = size_t(rows_) * 4 * width_;
    WeightGradients(b, 2, tape->rectified, d_out, 4 * width_, width_);
    tape->rectified.Reset();
    Tensor d_rectified = Make(wide), d_up = Make(wide);
    RunGemm<false, true>(d_out.data(), Of(b, 2).weights.data(), d_rectified.data(), rows_,
                         4 * width_, width_);
    RectifyBackward<<<Blocks(wide, kFlatThreads), kFlatThreads>>>(
        tape->up.data(), d_rectified.data(), d_up.data(), wide);
    tape->up.Reset();
    d_rectified.Reset();
    WeightGradients(b, 0, tape->in, d_up, width_, 4 * width_);
    tape->in.Reset();
    Tensor d_in = Make(size_t(rows_) * width_);
    RunGemm<false, true>(d_up.data(), Of(b, 0).weights.data(), d_in.data(), rows_, width_,
                         4 * width_, nullptr, d_out.data());
    return d_in;
  }

  void WeightGradients(long b, int which, const Tensor& in, const Tensor& d_out, int rows,
                       int columns) {
    Parameter &weights = Of(b, which), &bias = Of(b, which + 1);
    weights.gradient = Make(weights.count);
    bias.gradient = Make(bias.count);
    RunGemm<true, false>(in.data(), d_out.data(), weights.gradient.data(), rows, columns, rows_);
    SumColumns<<<Blocks(columns, kFlatThreads), kFlatThreads>>>(d_out.data(), bias.gradient.data(),
                                                                rows_, columns);
  }

  const Settings s_;
  const int rows_, width_;
  Allocator* allocator_;
  std::vector<Parameter> parameters_;
  Tensor losses_, loss_;
};

bool Train(const Settings& s) {
  const std::unique_ptr<Allocator> allocator = MakeAllocator(s.allocator, size_t(s.arena) << 20);
  Network network(s, allocator.get());
  Stopwatch watch;
  for (long i = 1; i <= s.iterations; ++i) {
    watch.Start();
    network.Step(i);
    network.Update(Momentum{});
    const float ms = watch.Stop();
    const float loss = network.Loss();
    std::printf("iter %ld  loss %.6f  ms %.4f\n", i, loss, ms);
    std::fflush(stdout);
    if (!std::isfinite(loss)) return false;
  }
  std::printf("footprint %zu bytes at most in use at once\n", allocator->peak());
  PrintChecksum(WeightsChecksum(network, network.parameters()));
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  return Train(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
