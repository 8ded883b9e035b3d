// SPDX-License-Identifier: Apache-2.0
// A random program, by its first argument: launches of some kinds on parts of some buffers, from
// two streams, in a period that repeats and now and then does not; buffers that are freed and come
// back. With a second argument the period is made of layers that are needed again in reverse, on
// one stream for the most part, with a few random launches between: much of that could be dropped.
// No data races. Its result is compared between runs (tests/preload/closed_loop/shadow_test.cc), so
// nothing counts the launches on the device, which would keep them from running again.
#include <algorithm>

#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr unsigned kThreads = 128;

__global__ void Map(float* out, const float* in, float scale, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = scale * in[i] + 0.125f;
}
__global__ void Combine(float* out, const float* a, const float* b, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = 0.5f * a[i] - 0.25f * b[i] * b[i];
}
__global__ void Accumulate(float* values, const float* in, int count) {  // in place
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = 0.5f * values[i] + 0.25f * in[i];
}
__global__ void EverySecond(float* out, const float* in, int count) {  // leaves gaps
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count / 2) out[2 * i] = in[i];
}
__global__ void Shuffle(float* out, const float* in, int count) {  // an address that is not linear
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = in[static_cast<unsigned>(i) * 2654435761u % count];
}
__global__ void Gather(float* out, const float* in, int count) {  // an address from data
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = 0.5f * in[__float_as_uint(in[i]) % count];
}
__global__ void Positive(float* out, const float* in, int count) {  // a branch on data
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && in[i] > 0.1f) out[i] = 0.5f * in[i];
}
__global__ void Count(unsigned* out, const float* in, int count) {  // an atomic
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count && in[i] > 0.2f) atomicAdd(&out[i % 16], 1u);
}
__global__ void Reverse(float* out, const float* in, int count) {  // through shared memory
  __shared__ float block[kThreads];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  block[threadIdx.x] = i < count ? in[i] : 0;
  __syncthreads();
  if (i < count) out[i] = 0.75f * block[kThreads - 1 - threadIdx.x];
}
__global__ void Sums(float* out, const float* in, int count) {  // dynamic shared memory, rows
  extern __shared__ float row[];
  row[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) row[threadIdx.x] += row[threadIdx.x + half];
    __syncthreads();
  }
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = row[0] / kThreads;
}

struct Part {
  int buffer, offset, count;
};
struct Step {
  int kind, stream;
  Part out, a, b;
};
constexpr int kKinds = 10;

class RandomProgram {
 public:
  RandomProgram(uint64_t seed, bool layers) : random_(seed), layers_(layers) {
    for (cudaStream_t& stream : streams_) CUDA_OK(cudaStreamCreate(&stream));
    CUDA_OK(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    const int buffers = (layers ? 10 : 5) + random_.Below(4);
    for (int b = 0; b < buffers; ++b) {
      sizes_.push_back(layers ? kLayer : (3 + random_.Below(5)) << 17);  // 1.5 to 3.5 MiB
      buffers_.push_back(nullptr);
      Renew(b);
    }
    if (layers) MakeLayers();
    const int steps = layers ? 0 : 8 + random_.Below(16);
    for (int s = 0; s < steps; ++s) period_.push_back(RandomStep());
  }

  void Run(int iterations) {
    for (int k = 0; k < iterations; ++k) {
      // Once in a while the period breaks: a launch more, one less, a buffer that is another one.
      const unsigned surprise = random_.Below(layers_ ? 20 : 8);
      const unsigned at = random_.Below(static_cast<uint32_t>(period_.size()));
      for (unsigned s = 0; s < period_.size(); ++s) {
        if (surprise == 1 && s == at) Submit(RandomStep());
        if (surprise == 2 && s == at) Renew(period_[s].a.buffer);
        if (surprise == 3 && s == at) continue;
        if (surprise == 4 && s == at && layers_) Look(period_[s].b.buffer);
        Submit(period_[s]);
      }
    }
  }

  std::vector<float> Result() {
    CUDA_OK(cudaDeviceSynchronize());
    std::vector<float> all = seen_;
    for (size_t b = 0; b < buffers_.size(); ++b) {
      std::vector<float> values(sizes_[b]);
      CUDA_OK(cudaMemcpy(values.data(), buffers_[b], 4 * values.size(), cudaMemcpyDeviceToHost));
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  static constexpr size_t kLayer = 1 << 19;

  // Two buffers take turns at the end for what comes back.
  void MakeLayers() {
    const int last = static_cast<int>(buffers_.size()) - 3;
    const auto whole = [](int buffer) { return Part{buffer, 0, static_cast<int>(kLayer)}; };
    constexpr int kProven[] = {0, 1, 0, 8};
    for (int l = 1; l <= last; ++l) {
      const auto earlier = static_cast<int>(random_.Below(static_cast<uint32_t>(l)));
      period_.push_back({kProven[random_.Below(4)], 0, whole(l), whole(l - 1), whole(earlier)});
    }
    for (int l = last; l >= 0; --l) {
      const int to = last + 1 + l % 2, from = l == last ? last : last + 1 + (l + 1) % 2;
      period_.push_back({1, 0, whole(to), whole(from), whole(l)});
    }
    period_.push_back({2, 0, whole(0), whole(last + 1), whole(0)});
    for (unsigned more = random_.Below(3); more > 0; --more) {
      Step step = RandomStep();
      if (random_.Below(4) > 0) step.stream = 0;
      period_.insert(period_.begin() + random_.Below(static_cast<uint32_t>(period_.size())), step);
    }
  }

  // A little of a buffer, in the middle of everything; it goes into the result.
  void Look(int buffer) {
    float values[16];
    CUDA_OK(cudaMemcpy(values, buffers_[buffer], sizeof values, cudaMemcpyDeviceToHost));
    seen_.insert(seen_.end(), values, values + 16);
  }

  // Freed, and there again with other content.
  void Renew(int buffer) {
    CUDA_OK(cudaDeviceSynchronize());
    float*& at = buffers_[buffer];
    if (at != nullptr) CUDA_OK(cudaFree(at));
    CUDA_OK(cudaMalloc(&at, 4 * sizes_[buffer]));
    const auto values = random_.Floats(sizes_[buffer], -1, 1);
    CUDA_OK(cudaMemcpy(at, values.data(), 4 * values.size(), cudaMemcpyHostToDevice));
  }

  Part RandomPart(int buffer, int count) {
    const int room = static_cast<int>(sizes_[buffer]) - count;
    const bool whole = random_.Below(3) > 0;
    return {buffer, whole ? 0 : static_cast<int>(random_.Below(room + 1)), count};
  }

  // What it reads and what it writes are one part, or lie in different buffers.
  Step RandomStep() {
    const auto any = [&] {
      return static_cast<int>(random_.Below(static_cast<uint32_t>(buffers_.size())));
    };
    Step step{
        static_cast<int>(random_.Below(kKinds)), static_cast<int>(random_.Below(2)), {}, {}, {}};
    if (random_.Below(2) == 0) step.kind = static_cast<int>(random_.Below(2));  // the usual ones
    const int out = any(), b = any();
    int a = any();
    const bool needs_another = step.kind >= 3;  // a thread reads what others write
    if (needs_another && a == out) a = (a + 1) % static_cast<int>(buffers_.size());
    size_t count = std::min({sizes_[out], sizes_[a], sizes_[b]});
    if (random_.Below(3) == 0) count = count / 2 + random_.Below(1000);
    step.out = RandomPart(out, static_cast<int>(count));
    const auto input = [&](int buffer) {
      return buffer == out ? step.out : RandomPart(buffer, static_cast<int>(count));
    };
    step.a = input(a);
    step.b = input(b);
    return step;
  }

  void Submit(const Step& step) {
    const cudaStream_t stream = streams_[step.stream];
    if (step.stream != last_) CUDA_OK(cudaStreamWaitEvent(stream, done_, 0));
    last_ = step.stream;
    float* out = buffers_[step.out.buffer] + step.out.offset;
    const float* a = buffers_[step.a.buffer] + step.a.offset;
    const float* b = buffers_[step.b.buffer] + step.b.offset;
    const int n =
        step.kind == 9 ? step.out.count / static_cast<int>(kThreads) * kThreads : step.out.count;
    const unsigned blocks = Blocks(n, kThreads);
    switch (step.kind) {
      case 0:
        Map<<<blocks, kThreads, 0, stream>>>(out, a, 0.5f, n);
        break;
      case 1:
        Combine<<<blocks, kThreads, 0, stream>>>(out, a, b, n);
        break;
      case 2:
        Accumulate<<<blocks, kThreads, 0, stream>>>(out, a, n);
        break;
      case 3:
        EverySecond<<<blocks, kThreads, 0, stream>>>(out, a, n);
        break;
      case 4:
        Shuffle<<<blocks, kThreads, 0, stream>>>(out, a, n);
        break;
      case 5:
        Gather<<<blocks, kThreads, 0, stream>>>(out, a, n);
        break;
      case 6:
        Positive<<<blocks, kThreads, 0, stream>>>(out, a, n);
        break;
      case 7:
        Count<<<blocks, kThreads, 0, stream>>>(reinterpret_cast<unsigned*>(out), a, n);
        break;
      case 8:
        Reverse<<<blocks, kThreads, 0, stream>>>(out, a, n);
        break;
      case 9:
        Sums<<<blocks, kThreads, 4 * kThreads, stream>>>(out, a, n);
        break;
    }
    CUDA_OK(cudaGetLastError());
    CUDA_OK(cudaEventRecord(done_, stream));
  }

  Random random_;
  cudaStream_t streams_[2];
  cudaEvent_t done_ = nullptr;
  int last_ = 0;
  std::vector<size_t> sizes_;
  std::vector<float*> buffers_;
  std::vector<Step> period_;
  const bool layers_;
  std::vector<float> seen_;
};

int main(int argc, char** argv) {
  const bool layers = argc > 2;
  RandomProgram program(Scale(argc, argv), layers);
  program.Run(layers ? 48 : 16);
  const std::vector<float> result = program.Result();
  uint64_t sum = 0xcbf29ce484222325ull;
  const auto* bytes = reinterpret_cast<const unsigned char*>(result.data());
  for (size_t i = 0; i < result.size() * sizeof(float); ++i) {
    sum = (sum ^ bytes[i]) * 0x100000001b3ull;
  }
  std::printf("checksum %016llx\nfootprint %zu\nPASS\n", static_cast<unsigned long long>(sum),
              4 * result.size());
  return 0;
}
