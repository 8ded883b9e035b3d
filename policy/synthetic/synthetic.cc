// SPDX-License-Identifier: Apache-2.0
#include "policy/synthetic/synthetic.h"

#include <algorithm>
#include <cmath>

#include "policy/synthetic/builder.h"
#include "policy/synthetic/training.h"

namespace atp::policy {
namespace {

std::string Id(const char* what, uint32_t i) { return what + std::to_string(i); }

// Inference larger than memory: every weight is read once, nothing is written back.
void AddSweep(SyntheticBuilder* b) {
  const SyntheticOptions& o = b->options();
  uint32_t data = b->Add("input", o.activation, "input", true);
  for (uint32_t i = 0; i < o.layers; ++i) {
    const uint32_t weight = b->Weight(Id("weight", i), o.weight);
    const uint32_t out = b->Activation(Id("out", i), o.activation);
    b->Launch(Id("forward:layer", i), {data, weight}, {out}, 1);
    data = out;
  }
}

// Tokens one after another: weights are read for each, the cache grows by a segment a token and is
// read whole.
void AddDecode(SyntheticBuilder* b) {
  const SyntheticOptions& o = b->options();
  std::vector<uint32_t> weights;
  std::vector<std::vector<uint32_t>> cache(o.layers);
  for (uint32_t i = 0; i < o.layers; ++i) weights.push_back(b->Weight(Id("weight", i), o.weight));
  for (uint32_t token = 0; token < o.steps; ++token) {
    uint32_t data = b->Activation(Id("embedding", token), 4u << 20);
    b->Launch(Id("embed:token", token), {}, {data}, 0);
    for (uint32_t i = 0; i < o.layers; ++i) {
      const std::string id = Id("layer", i) + "." + std::to_string(token);
      const uint32_t segment = b->Activation("cache:" + id, o.activation / std::max(1u, o.steps));
      const uint32_t out = b->Activation("out:" + id, 4u << 20);
      std::vector<uint32_t> reads{data, weights[i]};
      reads.insert(reads.end(), cache[i].begin(), cache[i].end());
      b->Launch("decode:" + id, reads, {segment, out}, 0);
      cache[i].push_back(segment);
      data = out;
    }
  }
}

// Mixture of experts: each step routes to two experts of a layer, a few of them far more often
// (Zipf).
void AddMixture(SyntheticBuilder* b) {
  const SyntheticOptions& o = b->options();
  std::vector<std::vector<uint32_t>> experts(o.layers);
  for (uint32_t i = 0; i < o.layers; ++i) {
    for (uint32_t e = 0; e < std::max(2u, o.experts); ++e) {
      experts[i].push_back(b->Weight(Id("layer", i) + Id(".expert", e), o.weight));
    }
  }
  auto skewed = [&](uint32_t n) {  // probability of e falls as 1 / (e + 1)
    double sum = 0;
    for (uint32_t e = 0; e < n; ++e) sum += 1.0 / (e + 1);
    double left = b->Uniform() * sum;
    uint32_t e = 0;
    while (e + 1 < n && (left -= 1.0 / (e + 1)) > 0) ++e;
    return e;
  };
  for (uint32_t step = 0; step < o.steps; ++step) {
    uint32_t data = b->Add(Id("input", step), o.activation / 8, "input", true);
    for (uint32_t i = 0; i < o.layers; ++i) {
      const std::string id = Id("layer", i) + "." + std::to_string(step);
      const uint32_t n = uint32_t(experts[i].size());
      const uint32_t first = skewed(n), second = (first + 1 + skewed(n - 1)) % n;
      const uint32_t out = b->Activation("out:" + id, o.activation / 8);
      b->Launch("experts:" + id, {data, experts[i][first], experts[i][second]}, {out}, 1);
      data = out;
    }
  }
}

// A few tensors, each a large share of memory: where parts of tensors matter.
void AddLarge(SyntheticBuilder* b) {
  const SyntheticOptions& o = b->options();
  const uint32_t count = std::max(3u, std::min(o.layers, 12u));
  const Bytes bytes = o.device_bytes / 4;
  std::vector<uint32_t> kept;
  for (uint32_t i = 0; i < count; ++i) {
    const Bytes size = Bytes(double(bytes) * (0.7 + 0.5 * b->Uniform())) >> 21 << 21;
    kept.push_back(b->Activation(Id("field", i), size));
    std::vector<uint32_t> reads;
    if (i > 0) reads.push_back(kept[i - 1]);
    b->Launch(Id("forward:field", i), reads, {kept[i]}, 4);
  }
  for (uint32_t i = count; i-- > 1;) {
    b->Launch(Id("backward:field", i), {kept[i], kept[i - 1]}, {}, 4);
  }
}

void AddRandom(SyntheticBuilder* b) {
  const SyntheticOptions& o = b->options();
  const uint32_t tensors = std::max(2u, 2 * o.layers), launches = std::max(2u, 4 * o.layers);
  for (uint32_t t = 0; t < tensors; ++t) {
    const bool global = b->Uniform() < 0.4;
    b->Add(Id("tensor", t), 1 + Bytes(double(o.activation) * std::pow(b->Uniform(), 2)),
           global ? "weight" : "other", global);
  }
  for (uint32_t k = 0; k < launches; ++k) {
    std::vector<uint32_t> reads, writes;
    for (uint32_t i = 0; i <= b->Below(4); ++i) reads.push_back(b->Below(tensors));
    for (uint32_t i = 0; i <= b->Below(2); ++i) writes.push_back(b->Below(tensors));
    for (auto* list : {&reads, &writes}) {
      std::sort(list->begin(), list->end());
      list->erase(std::unique(list->begin(), list->end()), list->end());
    }
    b->Launch(Id("random", k), reads, writes, 2 * b->Uniform(),
              b->Uniform() < 0.2 ? o.activation / 4 : 0);
  }
}

constexpr SyntheticKind kKinds[] = {
    {"layers", "training, plain layers"},
    {"residual", "training, each layer also reads the output of two layers before"},
    {"attention", "training, attention layers"},
    {"optimizer", "training with an optimizer that keeps two states for each weight"},
    {"micro-batches", "training, several micro-batches accumulate gradients (--steps)"},
    {"buckets", "training steps of a few lengths, drawn by seed (--steps)"},
    {"sweep", "inference: every weight is read once"},
    {"decode", "inference token by token with a growing cache (--steps)"},
    {"moe", "mixture of experts with skewed routing (--experts, --steps)"},
    {"large", "a few tensors, each a large share of memory"},
    {"random", "random tensors and touches"},
};

}  // namespace

std::span<const SyntheticKind> SyntheticKinds() { return kKinds; }

Trace MakeSynthetic(const SyntheticOptions& options) {
  SyntheticBuilder builder(options);
  const std::string& kind = options.kind;
  if (kind == "layers") AddTraining({}, &builder);
  if (kind == "residual") AddTraining({.skip = 2}, &builder);
  if (kind == "attention") AddTraining({.attention = true}, &builder);
  if (kind == "optimizer") AddTraining({.optimizer = true}, &builder);
  const std::vector<double> equal(std::max(1u, options.steps), 1.0);
  if (kind == "micro-batches") {
    AddTraining({.optimizer = true, .accumulate = true, .passes = equal}, &builder);
  }
  if (kind == "buckets") {
    constexpr double kLengths[] = {0.25, 0.5, 1};
    std::vector<double> lengths = equal;
    for (double& length : lengths) length = kLengths[builder.Below(3)];
    AddTraining({.optimizer = true, .passes = lengths}, &builder);
  }
  if (kind == "sweep") AddSweep(&builder);
  if (kind == "decode") AddDecode(&builder);
  if (kind == "moe") AddMixture(&builder);
  if (kind == "large") AddLarge(&builder);
  if (kind == "random") AddRandom(&builder);
  return builder.Take();
}

}  // namespace atp::policy
