// SPDX-License-Identifier: Apache-2.0
// An image in an array, turned through a filtering texture into another array through a surface,
// sharpened through a texture of that one, and looked up in a table through a texture of linear
// memory. The reference filters with the same weights: eight bits of fraction.
#include "tests/programs/program.h"

using namespace program;  // NOLINT

constexpr int kSide = 96, kTable = 256;

__global__ void Turn(cudaTextureObject_t image, cudaSurfaceObject_t turned, float cosine,
                     float sine) {
  COUNT_LAUNCH();
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const float u = x - kSide / 2 + 0.5f, v = y - kSide / 2 + 0.5f;
  const float from_x = u * cosine - v * sine, from_y = u * sine + v * cosine;
  const float value = tex2D<float>(image, from_x / kSide + 0.5f, from_y / kSide + 0.5f);
  surf2Dwrite(value, turned, x * int(sizeof(float)), y);
}

__global__ void Sharpen(cudaTextureObject_t image, cudaTextureObject_t table, float* out) {
  COUNT_LAUNCH();
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const float middle = tex2D<float>(image, x, y);
  const float around = tex2D<float>(image, x - 1, y) + tex2D<float>(image, x + 1, y) +
                       tex2D<float>(image, x, y - 1) + tex2D<float>(image, x, y + 1);
  const float sharp = middle + 0.5f * (middle - 0.25f * around);
  const int index = min(max(int(sharp), 0), kTable - 1);
  out[y * kSide + x] = sharp + tex1Dfetch<float>(table, index);
}

// What the texture unit does with wrapped, normalised coordinates and linear filtering.
float Filtered(const std::vector<float>& image, float x, float y) {
  const float at[2] = {x * kSide - 0.5f, y * kSide - 0.5f};
  int low[2];
  float weight[2];
  for (int d = 0; d < 2; ++d) {
    low[d] = int(std::floor(at[d]));
    weight[d] = std::nearbyint((at[d] - low[d]) * 256) / 256;
  }
  float sum = 0;
  for (int corner = 0; corner < 4; ++corner) {
    const int i = ((low[0] + corner % 2) % kSide + kSide) % kSide;
    const int j = ((low[1] + corner / 2) % kSide + kSide) % kSide;
    sum += (corner % 2 ? weight[0] : 1 - weight[0]) * (corner / 2 ? weight[1] : 1 - weight[1]) *
           image[j * kSide + i];
  }
  return sum;
}

cudaTextureObject_t TextureOf(cudaArray_t array, cudaTextureAddressMode mode, bool filtered) {
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  how.addressMode[0] = how.addressMode[1] = mode;
  how.filterMode = filtered ? cudaFilterModeLinear : cudaFilterModePoint;
  how.readMode = cudaReadModeElementType;
  how.normalizedCoords = filtered;
  cudaTextureObject_t object = 0;
  CUDA_OK(cudaCreateTextureObject(&object, &resource, &how, nullptr));
  return object;
}

int main() {
  Random random(7);
  const std::vector<float> image = random.Floats(kSide * kSide, 0, 250);
  const std::vector<float> table = random.Floats(kTable);
  const cudaChannelFormatDesc element = cudaCreateChannelDesc<float>();
  cudaArray_t first = nullptr, second = nullptr;
  CUDA_OK(cudaMallocArray(&first, &element, kSide, kSide));
  CUDA_OK(cudaMallocArray(&second, &element, kSide, kSide, cudaArraySurfaceLoadStore));
  CUDA_OK(cudaMemcpy2DToArray(first, 0, 0, image.data(), kSide * 4, kSide * 4, kSide,
                              cudaMemcpyHostToDevice));
  cudaExtent extent = {};
  cudaChannelFormatDesc told = {};
  unsigned flags = 0;
  CUDA_OK(cudaArrayGetInfo(&told, &extent, &flags, second));
  EXPECT(told.x == 32 && told.y == 0 && told.f == cudaChannelFormatKindFloat);
  EXPECT(extent.width == kSide && extent.height == kSide && extent.depth == 0);
  EXPECT(flags == cudaArraySurfaceLoadStore);

  const cudaTextureObject_t source = TextureOf(first, cudaAddressModeWrap, true);
  const cudaTextureObject_t result = TextureOf(second, cudaAddressModeClamp, false);
  cudaSurfaceObject_t target = 0;
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = second;
  CUDA_OK(cudaCreateSurfaceObject(&target, &resource));
  Buffer<float> entries(table), out(image.size());
  cudaTextureObject_t lookup = 0;
  resource = {};
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear.devPtr = entries.get();
  resource.res.linear.desc = element;
  resource.res.linear.sizeInBytes = entries.bytes();
  const cudaTextureDesc plain = {};
  CUDA_OK(cudaCreateTextureObject(&lookup, &resource, &plain, nullptr));

  const dim3 grid(kSide / 16, kSide / 16), block(16, 16);
  const float cosine = 0.8f, sine = 0.6f;
  Turn<<<grid, block>>>(source, target, cosine, sine);
  Sharpen<<<grid, block>>>(result, lookup, out.get());
  const std::vector<float> sharpened = out.Download();

  std::vector<float> turned(image.size()), back(image.size()), expected(image.size());
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const float u = x - kSide / 2 + 0.5f, v = y - kSide / 2 + 0.5f;
      turned[y * kSide + x] = Filtered(image, (u * cosine - v * sine) / kSide + 0.5f,
                                       (u * sine + v * cosine) / kSide + 0.5f);
    }
  }
  CUDA_OK(cudaMemcpyFromArray(back.data(), second, 0, 0, back.size() * 4, cudaMemcpyDeviceToHost));
  ExpectNear(back, turned, 0.01);  // one step of a weight, where rounding falls the other way
  const auto at = [&](int x, int y) {
    x = x < 0 ? 0 : x >= kSide ? kSide - 1 : x;
    y = y < 0 ? 0 : y >= kSide ? kSide - 1 : y;
    return back[y * kSide + x];
  };
  for (int y = 0; y < kSide; ++y) {
    for (int x = 0; x < kSide; ++x) {
      const float around = at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
      const float sharp = at(x, y) + 0.5f * (at(x, y) - 0.25f * around);
      const int index = sharp < 0 ? 0 : sharp > kTable - 1 ? kTable - 1 : int(sharp);
      // Just beside an integer the device's rounding decides which entry it is.
      const bool close = std::fabs(sharp - std::round(sharp)) < 1e-3f;
      const float seen = sharpened[y * kSide + x];
      expected[y * kSide + x] = close ? seen : sharp + table[index];
    }
  }
  ExpectNear(sharpened, expected, 1e-5);
  for (const cudaTextureObject_t object : {source, result, lookup})
    CUDA_OK(cudaDestroyTextureObject(object));
  CUDA_OK(cudaDestroySurfaceObject(target));
  CUDA_OK(cudaFreeArray(first));
  CUDA_OK(cudaFreeArray(second));
  return Finish(sharpened, 2);
}
