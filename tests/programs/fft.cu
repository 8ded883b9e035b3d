// SPDX-License-Identifier: Apache-2.0
// Radix-2 FFT in plain kernels, one launch a stage; compared with a direct sum at some frequencies
// and by its inverse.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kBits = 12, kCount = 1 << kBits;

__global__ void Reverse(const float2* in, float2* out) {
  COUNT_LAUNCH();
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[__brev(i) >> (32 - kBits)] = in[i];
}

__global__ void Butterfly(float2* data, int half, float sign) {
  COUNT_LAUNCH();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int k = i % half, at = i / half * 2 * half + k;
  float s, c;
  sincospif(sign * k / half, &s, &c);
  const float2 a = data[at], b = data[at + half];
  const float2 t = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
  data[at] = make_float2(a.x + t.x, a.y + t.y);
  data[at + half] = make_float2(a.x - t.x, a.y - t.y);
}

void Transform(const float2* in, float2* out, float sign) {
  Reverse<<<kCount / 256, 256>>>(in, out);
  for (int half = 1; half < kCount; half *= 2) {
    Butterfly<<<kCount / 512, 256>>>(out, half, sign);
  }
}

int main() {
  Random random(12);
  const auto signal = random.Floats(2 * kCount, -1, 1);
  Buffer<float> in(signal), spectrum(2 * kCount), back(2 * kCount);
  const auto complex = [](const Buffer<float>& b) { return reinterpret_cast<float2*>(b.get()); };
  Transform(complex(in), complex(spectrum), -1);
  Transform(complex(spectrum), complex(back), 1);

  const auto result = spectrum.Download();
  for (int f = 0; f < kCount; f += 173) {
    double re = 0, im = 0;
    for (int t = 0; t < kCount; ++t) {
      const double angle = -2 * M_PI * (int64_t(f) * t % kCount) / kCount;
      re += signal[2 * t] * std::cos(angle) - signal[2 * t + 1] * std::sin(angle);
      im += signal[2 * t] * std::sin(angle) + signal[2 * t + 1] * std::cos(angle);
    }
    EXPECT(std::fabs(result[2 * f] - re) < 1e-2 && std::fabs(result[2 * f + 1] - im) < 1e-2);
  }
  auto returned = back.Download();
  for (float& v : returned) v /= kCount;
  ExpectNear(returned, signal, 1e-5);
  return Finish(result, 2 * (1 + kBits));
}
