// SPDX-License-Identifier: Apache-2.0
// Trains an LSTM on a text, byte by byte, with momentum and back-propagation through all steps of a
// sequence. An ordinary CUDA program: plain kernels, one cudaMalloc per tensor, one stream. Prints
// the loss of each iteration and a checksum of the final weights, the same to the bit in every run
// with the same options. --check repeats the training on the CPU and compares.
#include <cstdio>
#include <memory>

#include "examples/lstm/model.cuh"
#include "examples/lstm/reference.h"
#include "examples/support/device.h"
#include "examples/support/text.h"
#include "examples/support/training.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-3;

struct Settings {
  LstmConfig config;
  long iterations = 10;
  std::string text;
  bool check = false;
};

Settings ParseSettings(int argc, char** argv) {
  long layers = 2, hidden = 256, batch = 8, sequence = 16, seed = 1;
  Settings s;
  Options options("trains an LSTM on a text and prints the loss of each iteration");
  options.Add("--layers", &layers, 1, 1000, "number of layers");
  options.Add("--hidden", &hidden, 1, 65536, "width of a layer's state");
  options.Add("--batch", &batch, 1, 65535, "sequences per iteration");
  options.Add("--sequence", &sequence, 1, 65536, "steps of a sequence");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "training steps");
  options.Add("--seed", &seed, 0, 2147483647, "seed of weights and batches");
  options.Add("--text", &s.text, "file to learn from (default: tiny.txt beside the program)");
  options.Add("--check", &s.check, "compare with a reference on the CPU; slow");
  options.Parse(argc, argv);
  s.config = {int(layers), int(hidden), int(batch), int(sequence), uint32_t(seed)};
  if (s.text.empty()) s.text = DefaultText();
  return s;
}

// [batch][step] to [step][batch].
std::vector<int> ByStep(const std::vector<int>& values, const LstmConfig& c) {
  std::vector<int> turned(values.size());
  for (int b = 0; b < c.batch; ++b) {
    for (int t = 0; t < c.sequence; ++t) turned[t * c.batch + b] = values[b * c.sequence + t];
  }
  return turned;
}

bool Train(const Settings& s) {
  const LstmConfig& c = s.config;
  const std::vector<unsigned char> text = ReadText(s.text, c.sequence);
  const BatchShape shape = {c.batch, c.sequence, c.seed};
  const size_t token_bytes = shape.tokens() * sizeof(int);
  DeviceMemory memory;
  LstmModel model(c, &memory);
  int* tokens = memory.Allocate<int>("tokens", shape.tokens());
  int* targets = memory.Allocate<int>("targets", shape.tokens());
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());

  Momentum step;
  step.learning_rate = 0.1f;
  WorstError worst(kTolerance);
  std::unique_ptr<LstmReference> reference;
  if (s.check) reference = std::make_unique<LstmReference>(c);
  Stopwatch watch;
  std::vector<int> host_tokens, host_targets;
  for (long i = 1; i <= s.iterations; ++i) {
    CutBatch(text, shape, i, &host_tokens, &host_targets);
    host_targets = ByStep(host_targets, c);
    watch.Start();
    CHECK_CUDA(cudaMemcpy(tokens, host_tokens.data(), token_bytes, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(targets, host_targets.data(), token_bytes, cudaMemcpyHostToDevice));
    model.ForwardBackward(tokens, targets);
    model.Update(step);
    const float ms = watch.Stop();
    const float loss = model.Loss();
    std::printf("iter %ld  loss %.6f  ms %.4f\n", i, loss, ms);
    std::fflush(stdout);
    if (!std::isfinite(loss)) return false;
    if (!reference) continue;
    const float expected = reference->ForwardBackward(host_tokens, host_targets);
    NoteStep(model, *reference, model.parameters(), loss, expected, "", &worst);
    reference->Update(step);
  }
  PrintChecksum(WeightsChecksum(model, model.parameters().size()));
  const bool right = !reference || worst.Report();
  memory.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Train(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
