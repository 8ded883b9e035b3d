// SPDX-License-Identifier: Apache-2.0
// Generates text with a decoder of random weights, token by token, as inference servers do: all
// weights are read for every token, and the caches of keys and values grow. --experts makes each
// layer a mixture of experts of which a token uses a few, with skewed routing that the host reads.
// An ordinary CUDA program: plain kernels, one cudaMalloc per tensor, one stream. --check follows
// on the CPU and compares the logits of every token.
#include <cstdio>
#include <memory>

#include "examples/decode/model.cuh"
#include "examples/decode/reference.h"
#include "examples/support/compare.h"
#include "examples/support/device.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 1e-3;

struct Settings {
  DecodeConfig config;
  long tokens = 10;
  bool check = false;
};

Settings ParseSettings(int argc, char** argv) {
  long layers = 4, width = 256, heads = 4, batch = 2, context = 0, prompt = 0, experts = 0, top = 2,
       seed = 1;
  Settings s;
  Options options("generates tokens with a decoder of random weights");
  options.Add("--layers", &layers, 1, 1000, "number of layers");
  options.Add("--width", &width, 4, 65536, "width of the model, a multiple of 4 and of --heads");
  options.Add("--heads", &heads, 1, 1024, "attention heads");
  options.Add("--batch", &batch, 1, kMostSequences, "sequences");
  options.Add("--tokens", &s.tokens, 1, 1000000, "tokens of each sequence");
  options.Add("--context", &context, 0, 1000000, "places of the caches (0: as many as tokens)");
  options.Add("--prompt", &prompt, 0, 1000000, "places of the caches that are filled at the start");
  options.Add("--experts", &experts, 0, 1024, "experts of a layer (0: none, a dense network)");
  options.Add("--top", &top, 1, 1024, "experts that a token uses in a layer");
  options.Add("--seed", &seed, 0, 2147483647, "seed of the weights and the drawing");
  options.Add("--check", &s.check, "compare with a reference on the CPU; slow");
  options.Parse(argc, argv);
  if (width % heads || width % 4) {
    Options::Refuse("--width " + std::to_string(width) + " is no multiple of 4 and of --heads " +
                    std::to_string(heads));
  }
  if (experts > 0 && top > experts) Options::Refuse("--top is larger than --experts");
  if (context == 0) context = prompt + s.tokens;
  if (context < prompt + s.tokens) Options::Refuse("--context is smaller than --prompt + --tokens");
  s.config = {int(layers),  int(width), int(heads),  int(batch),    int(context),
              int(experts), int(top),   int(prompt), uint32_t(seed)};
  return s;
}

bool Decode(const Settings& s) {
  DeviceMemory memory;
  DecodeModel model(s.config, &memory);
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());

  WorstError worst(kTolerance);
  std::unique_ptr<DecodeReference> reference;
  if (s.check) reference = std::make_unique<DecodeReference>(s.config);
  Stopwatch watch;
  uint64_t sum = kChecksumStart;
  std::vector<int> tokens = model.Tokens();
  for (int token = 0; token < s.tokens; ++token) {
    const int place = s.config.prompt + token;
    watch.Start();
    model.Step(place);
    const float ms = watch.Stop();
    const std::vector<float> logits = model.Logits();
    if (reference) {
      worst.Note("token " + std::to_string(token + 1),
                 RelativeError(logits, reference->Step(place, tokens)));
    }
    tokens = model.Tokens();
    sum = Checksum(sum, logits.data(), logits.size());
    sum = Checksum(sum, tokens.data(), tokens.size());
    std::printf("token %d  drawn %d  ms %.4f\n", token + 1, tokens[0], ms);
    std::fflush(stdout);
  }
  PrintChecksum(sum);
  const bool right = !reference || worst.Report();
  memory.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Decode(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
