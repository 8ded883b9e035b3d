// SPDX-License-Identifier: Apache-2.0
// Sweeps the weights of a language model that lie in one buffer, one behind the other, as llama.cpp
// loads them: one allocation for all, tensors aligned to 128 bytes (ggml_backend_buft_get_alignment
// of its CUDA backend), nine a layer, of which two are a few KiB. Each pass computes one token
// (without attention to earlier ones) from the same vector, and is compared with the CPU's.
#include <cmath>
#include <cstdio>
#include <vector>

#include "examples/support/blocks.cuh"
#include "examples/support/compare.h"
#include "examples/support/device.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-3;
constexpr size_t kAlignment = 128;
constexpr float kEpsilon = 1e-5f;

struct Settings {
  long layers = 33, width = 512, hidden = 1408, vocabulary = 2048, passes = 3, seed = 1;
};

// Of a layer; keys and values are a quarter as wide (grouped queries).
enum Part { kNorm1, kQuery, kKey, kValue, kOutput, kNorm2, kGate, kUp, kDown, kParts };

struct Tensor {
  size_t rows = 0, columns = 0;
  uint32_t seed = 0;
  size_t offset = 0;  // in the buffer, in bytes
  size_t count() const { return rows * columns; }
  float scale() const { return std::sqrt(3.0f / float(columns)); }
};

struct Model {
  std::vector<Tensor> tensors;  // kParts for each layer, then the last norm, the head, the start
  size_t bytes = 0;
  explicit Model(const Settings& s) {
    const size_t w = s.width, h = s.hidden, k = w / 4;
    const std::pair<size_t, size_t> shapes[kParts] = {{1, w}, {w, w}, {k, w}, {k, w}, {w, w},
                                                      {1, w}, {h, w}, {h, w}, {w, h}};
    for (long l = 0; l < s.layers; ++l) {
      for (const auto& [rows, columns] : shapes) Add(s, rows, columns);
    }
    Add(s, 1, w);
    Add(s, s.vocabulary, w);
    Add(s, 1, w);
  }
  void Add(const Settings& s, size_t rows, size_t columns) {
    const auto number = uint32_t(tensors.size());
    tensors.push_back({rows, columns, uint32_t(s.seed) * 1000003u + number, bytes});
    bytes += (tensors.back().count() * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  }
  const Tensor& Of(long layer, Part part) const { return tensors[layer * kParts + part]; }
  const Tensor& FromEnd(size_t i) const { return tensors[tensors.size() - i]; }
};

// One block a row; out = W in (+ what is there). The order of additions is fixed.
__global__ void __launch_bounds__(kRowThreads)
    Multiply(const float* matrix, const float* in, float* out, int columns, bool add) {
  __shared__ float scratch[kRowThreads];
  const float* row = matrix + size_t(blockIdx.x) * columns;
  float sum = 0;
  for (int c = threadIdx.x; c < columns; c += kRowThreads) sum += row[c] * in[c];
  sum = OverBlock<false>(sum, scratch);
  if (threadIdx.x == 0) out[blockIdx.x] = add ? out[blockIdx.x] + sum : sum;
}

__global__ void __launch_bounds__(kRowThreads)
    Normalise(const float* in, const float* weights, float* out, int count) {
  __shared__ float scratch[kRowThreads];
  float sum = 0;
  for (int i = threadIdx.x; i < count; i += kRowThreads) sum += in[i] * in[i];
  const float factor = rsqrtf(OverBlock<false>(sum, scratch) / count + kEpsilon);
  for (int i = threadIdx.x; i < count; i += kRowThreads) out[i] = in[i] * factor * weights[i];
}

// Attention of a token to itself is its value; keys and queries take part so that they are read.
__global__ void Mix(const float* query, const float* key, const float* value, float* out, int count,
                    int shared) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = value[i % shared] + 0.1f * tanhf(query[i] * key[i % shared]);
}

__global__ void Gate(const float* gate, const float* up, float* out, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

// The same on the CPU, with plain loops.
class Reference {
 public:
  Reference(const Settings& s, const Model& model) : s_(s), model_(model) {}
  std::vector<float> Logits() const {
    std::vector<float> x = Values(model_.FromEnd(1));
    for (long l = 0; l < s_.layers; ++l) {
      const std::vector<float> a = Normal(x, model_.Of(l, kNorm1));
      const std::vector<float> q = Times(model_.Of(l, kQuery), a), k = Times(model_.Of(l, kKey), a),
                               v = Times(model_.Of(l, kValue), a);
      std::vector<float> m(q.size());
      for (size_t i = 0; i < m.size(); ++i) {
        m[i] = v[i % v.size()] + 0.1f * std::tanh(q[i] * k[i % k.size()]);
      }
      Add(&x, Times(model_.Of(l, kOutput), m));
      const std::vector<float> b = Normal(x, model_.Of(l, kNorm2));
      std::vector<float> g = Times(model_.Of(l, kGate), b);
      const std::vector<float> u = Times(model_.Of(l, kUp), b);
      for (size_t i = 0; i < g.size(); ++i) g[i] = g[i] / (1 + std::exp(-g[i])) * u[i];
      Add(&x, Times(model_.Of(l, kDown), g));
    }
    return Times(model_.FromEnd(2), Normal(x, model_.FromEnd(3)));
  }

 private:
  static float At(const Tensor& t, size_t i) { return Uniform(t.seed, uint32_t(i), t.scale()); }
  static std::vector<float> Values(const Tensor& t) {
    std::vector<float> values(t.count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = At(t, i);
    return values;
  }
  static std::vector<float> Times(const Tensor& t, const std::vector<float>& x) {
    std::vector<float> y(t.rows);
    for (size_t r = 0; r < t.rows; ++r) {
      for (size_t c = 0; c < t.columns; ++c) y[r] += At(t, r * t.columns + c) * x[c];
    }
    return y;
  }
  static std::vector<float> Normal(std::vector<float> x, const Tensor& weights) {
    float sum = 0;
    for (float v : x) sum += v * v;
    const float factor = 1 / std::sqrt(sum / float(x.size()) + kEpsilon);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= factor * At(weights, i);
    return x;
  }
  static void Add(std::vector<float>* x, const std::vector<float>& y) {
    for (size_t i = 0; i < x->size(); ++i) (*x)[i] += y[i];
  }
  const Settings& s_;
  const Model& model_;
};

class Device {
 public:
  Device(const Settings& s, const Model& model) : s_(s), model_(model) {
    buffer_ = memory_.Allocate<char>("the weights", model.bytes);
    x_ = Vector("x", s.width);
    normal_ = Vector("normal", s.width);
    query_ = Vector("query", s.width);
    key_ = Vector("key", s.width / 4);
    value_ = Vector("value", s.width / 4);
    gate_ = Vector("gate", s.hidden);
    up_ = Vector("up", s.hidden);
    logits_ = Vector("logits", s.vocabulary);
    for (const Tensor& t : model.tensors) {
      Initialise<<<Blocks(t.count(), kFlatThreads), kFlatThreads>>>(At(t), t.count(), t.seed,
                                                                    t.scale(), 0);
    }
    CHECK_CUDA(cudaGetLastError());
    std::printf("footprint %zu bytes, of them %zu in %zu tensors of one buffer\n", memory_.bytes(),
                model.bytes, model.tensors.size());
  }

  void Pass() {
    const int w = int(s_.width), k = w / 4, h = int(s_.hidden);
    CHECK_CUDA(
        cudaMemcpyAsync(x_, At(model_.FromEnd(1)), w * sizeof(float), cudaMemcpyDeviceToDevice));
    for (long l = 0; l < s_.layers; ++l) {
      Normal(model_.Of(l, kNorm1));
      Times(model_.Of(l, kQuery), normal_, query_);
      Times(model_.Of(l, kKey), normal_, key_);
      Times(model_.Of(l, kValue), normal_, value_);
      Mix<<<Blocks(w, kFlatThreads), kFlatThreads>>>(query_, key_, value_, normal_, w, k);
      Times(model_.Of(l, kOutput), normal_, x_, /*add=*/true);
      Normal(model_.Of(l, kNorm2));
      Times(model_.Of(l, kGate), normal_, gate_);
      Times(model_.Of(l, kUp), normal_, up_);
      Gate<<<Blocks(h, kFlatThreads), kFlatThreads>>>(gate_, up_, gate_, h);
      Times(model_.Of(l, kDown), gate_, x_, /*add=*/true);
    }
    Normal(model_.FromEnd(3));
    Times(model_.FromEnd(2), normal_, logits_);
    CHECK_CUDA(cudaGetLastError());
  }

  std::vector<float> Logits() const {
    std::vector<float> logits(s_.vocabulary);
    CHECK_CUDA(
        cudaMemcpy(logits.data(), logits_, logits.size() * sizeof(float), cudaMemcpyDeviceToHost));
    return logits;
  }
  void FreeAll() { memory_.FreeAll(); }

 private:
  float* Vector(const char* name, long count) { return memory_.Allocate<float>(name, count); }
  float* At(const Tensor& t) const { return reinterpret_cast<float*>(buffer_ + t.offset); }
  void Normal(const Tensor& weights) {
    Normalise<<<1, kRowThreads>>>(x_, At(weights), normal_, int(s_.width));
  }
  void Times(const Tensor& t, const float* in, float* out, bool add = false) {
    Multiply<<<unsigned(t.rows), kRowThreads>>>(At(t), in, out, int(t.columns), add);
  }

  const Settings& s_;
  const Model& model_;
  DeviceMemory memory_;
  char* buffer_ = nullptr;
  float *x_, *normal_, *query_, *key_, *value_, *gate_, *up_, *logits_;
};

Settings ParseSettings(int argc, char** argv) {
  Settings s;
  Options options("reads the weights of a language model, all in one buffer, once per pass");
  options.Add("--layers", &s.layers, 1, 100000, "layers of nine tensors");
  options.Add("--width", &s.width, 4, 65536, "width of the model, a multiple of 4");
  options.Add("--hidden", &s.hidden, 1, 1 << 20, "width inside a layer");
  options.Add("--vocabulary", &s.vocabulary, 1, 1 << 20, "rows of the last matrix");
  options.Add("--passes", &s.passes, 1, 1000000000, "passes over all layers");
  options.Add("--seed", &s.seed, 0, 2147483647, "seed of the weights");
  options.Parse(argc, argv);
  if (s.width % 4) Options::Refuse("--width " + std::to_string(s.width) + " is no multiple of 4");
  return s;
}

bool Sweep(const Settings& s) {
  const Model model(s);
  Device device(s, model);
  const std::vector<float> expected = Reference(s, model).Logits();
  Stopwatch watch;
  WorstError worst(kTolerance);
  std::vector<float> logits;
  for (long pass = 1; pass <= s.passes; ++pass) {
    watch.Start();
    device.Pass();
    const float ms = watch.Stop();
    logits = device.Logits();
    const double error = RelativeError(logits, expected);
    std::printf("pass %ld  error %.2e  ms %.4f\n", pass, error, ms);
    std::fflush(stdout);
    worst.Note("", error);
  }
  PrintChecksum(Checksum(kChecksumStart, logits.data(), logits.size()));
  const bool right = worst.Report();
  device.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Sweep(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
