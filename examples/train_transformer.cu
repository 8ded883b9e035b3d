// SPDX-License-Identifier: Apache-2.0
// Trains a small decoder-only transformer on a text, byte by byte, with AdamW. An ordinary CUDA
// program: plain kernels, one cudaMalloc per tensor, one stream. Prints the loss of each iteration
// and a checksum of the final weights, which is the same to the bit in every run with the same
// options. --check repeats the training on the CPU and compares. --offload is the same training
// with the optimizer's moments moved by hand; --update-in-backward in that order, nothing moved.
#include <cstdio>
#include <memory>

#include "examples/support/device.h"
#include "examples/support/text.h"
#include "examples/support/training.h"
#include "examples/transformer/model.cuh"
#include "examples/transformer/reference.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-3;

struct Settings {
  Config config;
  long iterations = 10, buckets = 1, evaluate_every = 0, offload = 0, slots = 2;
  std::string text;
  bool check = false, update_in_backward = false;
};

Settings ParseSettings(int argc, char** argv) {
  long layers = 4, width = 512, heads = 8, batch = 1, sequence = 32, seed = 1, iterations = 10;
  Settings s;
  Options options("trains a small transformer on a text and prints the loss of each iteration");
  options.Add("--layers", &layers, 1, 1000, "number of layers");
  options.Add("--width", &width, 4, 65536, "width of the model, a multiple of 4 and of --heads");
  options.Add("--heads", &heads, 1, 1024, "attention heads");
  options.Add("--batch", &batch, 1, 65535, "sequences per iteration");
  options.Add("--sequence", &sequence, 1, 65536, "tokens per sequence");
  options.Add("--buckets", &s.buckets, 1, 65536,
              "lengths of sequences, from which each iteration draws one: multiples of "
              "sequence / buckets");
  options.Add("--iterations", &iterations, 1, 1000000000, "training steps");
  options.Add("--evaluate-every", &s.evaluate_every, 0, 1000000000,
              "after so many iterations the mean loss of some batches is printed; 0: never");
  options.Add(
      "--offload", &s.offload, 0, 1L << 40,
      "moves the optimizer's moments by hand, so that so many bytes of the card suffice; 0: "
      "not");
  options.Add("--update-in-backward", &s.update_in_backward,
              "updates each parameter as soon as its gradient is there, as --offload does");
  options.Add("--slots", &s.slots, 1, 1024, "with --offload: buffers on the card");
  options.Add("--seed", &seed, 0, 2147483647, "seed of weights and batches");
  options.Add("--text", &s.text, "file to learn from (default: tiny.txt beside the program)");
  options.Add("--check", &s.check, "compare with a reference on the CPU; slow");
  options.Parse(argc, argv);
  if (width % heads || width % 4) {
    Options::Refuse("--width " + std::to_string(width) + " is no multiple of 4 and of --heads " +
                    std::to_string(heads));
  }
  if (sequence % s.buckets) Options::Refuse("--sequence is no multiple of --buckets");
  s.config = {int(layers), int(width), int(heads), int(batch), int(sequence), uint32_t(seed)};
  s.iterations = iterations;
  if (s.text.empty()) s.text = DefaultText();
  return s;
}

// Follows the training on the CPU and keeps the greatest deviation.
class Checker {
 public:
  explicit Checker(const Config& config) : reference_(config) {}

  void Step(int sequence, const std::vector<int>& tokens, const std::vector<int>& targets,
            const Model& model, float loss) {
    reference_.SetSequence(sequence);
    const float expected = reference_.ForwardBackward(tokens, targets);
    NoteStep(model, reference_, model.shapes(), loss, expected, ".gradient", &worst_);
  }

  void Update(const AdamW& adam, int step) { reference_.Update(adam, step); }

  void Finish(const Model& model) {
    for (size_t p = 0; p < model.shapes().size(); ++p) {
      worst_.Note(model.shapes()[p].name, RelativeError(model.Weights(p), reference_.Weights(p)));
    }
  }

  bool Report() const { return worst_.Report(); }

 private:
  Reference reference_;
  WorstError worst_{kTolerance};
};

// The length of an iteration's sequences.
int DrawSequence(const Settings& s, int iteration) {
  const uint32_t bucket = Mix(s.config.seed + Mix(uint32_t(iteration))) % uint32_t(s.buckets);
  return int(s.config.sequence / s.buckets * (bucket + 1));
}

// Where the texts of a step go, on the device.
struct Batch {
  int *tokens, *targets;
  std::vector<int> host_tokens, host_targets;

  void Cut(const std::vector<unsigned char>& text, const BatchShape& shape, int number) {
    CutBatch(text, shape, number, &host_tokens, &host_targets);
  }
  void Send(const BatchShape& shape) {
    const size_t bytes = shape.tokens() * sizeof(int);
    CHECK_CUDA(cudaMemcpy(tokens, host_tokens.data(), bytes, cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(targets, host_targets.data(), bytes, cudaMemcpyHostToDevice));
  }
};

// The mean loss of batches that are the same in every evaluation.
void Evaluate(const Settings& s, const std::vector<unsigned char>& text, int iteration,
              Batch* batch, Model* model) {
  constexpr int kBatches = 4;
  const BatchShape shape = {s.config.batch, s.config.sequence, ~s.config.seed};
  model->SetSequence(shape.sequence);
  Stopwatch watch;
  watch.Start();
  float sum = 0;
  for (int b = 1; b <= kBatches; ++b) {
    batch->Cut(text, shape, b);
    batch->Send(shape);
    model->Forward(batch->tokens, batch->targets);
    sum += model->Loss();
  }
  std::printf("evaluation after %d  loss %.6f  ms %.4f\n", iteration, sum / kBatches, watch.Stop());
}

bool Train(const Settings& s) {
  const std::vector<unsigned char> text = ReadText(s.text, s.config.sequence);
  AdamW adam;
  // Wide models want smaller steps.
  adam.learning_rate = std::fmin(1e-3f, 0.256f / float(s.config.width));
  DeviceMemory memory;
  std::unique_ptr<MomentOffload> offload;
  if (s.offload > 0) offload = std::make_unique<MomentOffload>(s.offload, s.slots);
  Model model(s.config, &memory, offload.get());
  Batch batch;
  batch.tokens = memory.Allocate<int>("tokens", s.config.tokens());
  batch.targets = memory.Allocate<int>("targets", s.config.tokens());
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());

  Stopwatch watch;
  const bool at_once = offload != nullptr || s.update_in_backward;
  Checker* checker = s.check ? new Checker(s.config) : nullptr;
  for (int i = 1; i <= s.iterations; ++i) {
    const BatchShape shape = {s.config.batch, DrawSequence(s, i), s.config.seed};
    batch.Cut(text, shape, i);
    model.SetSequence(shape.sequence);
    watch.Start();
    batch.Send(shape);
    if (at_once) {
      model.Step(batch.tokens, batch.targets, adam, i);
    } else {
      model.ForwardBackward(batch.tokens, batch.targets);
    }
    if (checker) {
      checker->Step(shape.sequence, batch.host_tokens, batch.host_targets, model, model.Loss());
    }
    if (!at_once) model.Update(adam, i);
    if (checker) checker->Update(adam, i);
    const float ms = watch.Stop();
    const float loss = model.Loss();
    std::printf("iter %d  loss %.6f  ms %.4f\n", i, loss, ms);
    std::fflush(stdout);
    if (!std::isfinite(loss)) return false;
    if (s.evaluate_every > 0 && i % s.evaluate_every == 0) Evaluate(s, text, i, &batch, &model);
  }
  PrintChecksum(WeightsChecksum(model, model.shapes().size()));
  bool right = true;
  if (checker) {
    checker->Finish(model);
    right = checker->Report();
    delete checker;
  }
  memory.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Train(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
