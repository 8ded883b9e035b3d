// SPDX-License-Identifier: Apache-2.0
// Trains VGG-19 on pictures made of stripes, one direction and width a class, with momentum. An
// ordinary CUDA program: plain kernels, one cudaMalloc per tensor, one stream. Prints the loss of
// each iteration and a checksum of the final weights, the same to the bit in every run with the
// same options. --check repeats the training on the CPU and compares.
#include <cstdio>
#include <memory>

#include "examples/support/device.h"
#include "examples/support/training.h"
#include "examples/vgg/model.cuh"
#include "examples/vgg/reference.h"

namespace {

using namespace example;  // NOLINT

constexpr double kTolerance = 2e-3;

struct Settings {
  VggConfig config;
  long iterations = 10;
  bool check = false;
};

Settings ParseSettings(int argc, char** argv) {
  long channels = 64, image = 32, hidden = 4096, classes = 1000, batch = 8, seed = 1;
  Settings s;
  Options options("trains VGG-19 on pictures of stripes and prints the loss of each iteration");
  options.Add("--channels", &channels, 1, 1024, "channels of the first group");
  options.Add("--image", &image, 32, 4096, "edge of a picture, a multiple of 32");
  options.Add("--hidden", &hidden, 1, 65536, "width of the two fully connected layers");
  options.Add("--classes", &classes, 2, 65536, "classes");
  options.Add("--batch", &batch, 1, 65535, "pictures per iteration");
  options.Add("--iterations", &s.iterations, 1, 1000000000, "training steps");
  options.Add("--seed", &seed, 0, 2147483647, "seed of weights and pictures");
  options.Add("--check", &s.check, "compare with a reference on the CPU; slow");
  options.Parse(argc, argv);
  if (image % 32) Options::Refuse("--image " + std::to_string(image) + " is no multiple of 32");
  s.config = {int(channels), int(image), int(hidden), int(classes), int(batch), uint32_t(seed)};
  return s;
}

// Picture and label of each place of a batch.
void MakeBatch(const VggConfig& c, long iteration, std::vector<float>* images,
               std::vector<int>* labels) {
  const size_t pixels = size_t(c.image) * c.image;
  images->resize(size_t(c.batch) * kColours * pixels);
  labels->resize(c.batch);
  for (int b = 0; b < c.batch; ++b) {
    const uint32_t number = Mix(c.seed + Mix(uint32_t(iteration) * 1000003u + uint32_t(b)));
    const int label = int(number % uint32_t(c.classes));
    (*labels)[b] = label;
    const int across = label % 7 + 1, down = label / 7 % 7 + 1;
    for (int colour = 0; colour < kColours; ++colour) {
      for (size_t p = 0; p < pixels; ++p) {
        const int y = int(p / c.image), x = int(p % c.image);
        const float stripe = ((x / across + y / down) & 1) != 0 ? 1.0f : -1.0f;
        const uint32_t at = uint32_t(colour * pixels + p);
        (*images)[(size_t(b) * kColours + colour) * pixels + p] =
            stripe + Uniform(number, at, 0.3f);
      }
    }
  }
}

bool Train(const Settings& s) {
  DeviceMemory memory;
  VggModel model(s.config, &memory);
  std::printf("footprint %zu bytes in %zu tensors\n", memory.bytes(), memory.count());

  Momentum step;
  WorstError worst(kTolerance);
  std::unique_ptr<VggReference> reference;
  if (s.check) reference = std::make_unique<VggReference>(s.config);
  Stopwatch watch;
  std::vector<float> images;
  std::vector<int> labels;
  for (long i = 1; i <= s.iterations; ++i) {
    MakeBatch(s.config, i, &images, &labels);
    watch.Start();
    CHECK_CUDA(cudaMemcpy(model.images(), images.data(), images.size() * sizeof(float),
                          cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(model.labels(), labels.data(), labels.size() * sizeof(int),
                          cudaMemcpyHostToDevice));
    model.ForwardBackward();
    model.Update(step);
    const float ms = watch.Stop();
    const float loss = model.Loss();
    std::printf("iter %ld  loss %.6f  ms %.4f\n", i, loss, ms);
    std::fflush(stdout);
    if (!std::isfinite(loss)) return false;
    if (!reference) continue;
    const float expected = reference->ForwardBackward(images, labels);
    NoteStep(model, *reference, model.layers(), loss, expected, "", &worst);
    reference->Update(step);
  }
  PrintChecksum(WeightsChecksum(model, model.layers().size()));
  const bool right = !reference || worst.Report();
  memory.FreeAll();
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  return Train(ParseSettings(argc, argv)) ? 0 : example::kExitWrongResult;
}
