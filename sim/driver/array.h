// SPDX-License-Identifier: Apache-2.0
// CUDA arrays, and the texture and surface objects that kernels read and write them through. Their
// layout is ours: rows one after the other in plain device memory of the context. Plain arrays of
// one to three dimensions; layered, cube and mipmapped ones are refused. Under the driver's lock.
#pragma once

#include <cstdint>
#include <map>

#include "sim/driver/memory.h"
#include "sim/exec/texture.h"

namespace atp::sim {

class Call;

struct Array {
  CUDA_ARRAY3D_DESCRIPTOR description{};
  Allocation* memory = nullptr;
  Context* context = nullptr;
  uint64_t row_pitch = 0, slice_pitch = 0;  // bytes
  // Sizes with 1 for the dimensions that are not there.
  uint64_t height() const { return description.Height ? description.Height : 1; }
  uint64_t depth() const { return description.Depth ? description.Depth : 1; }
  uint64_t row_bytes = 0;  // width in bytes
};

// What CUtexObject or CUsurfObject names.
struct TextureObject {
  Texture texture;
  CUDA_RESOURCE_DESC resource{};
  CUDA_TEXTURE_DESC description{};
  Context* context = nullptr;
};
using TextureObjects = std::map<uint64_t, TextureObject>;

// The element of a format and number of channels; false when no array has such elements here.
bool ElementOf(CUarray_format format, unsigned channels, Texture* texture);

void DropArray(Driver& driver, Lane lane, Array* array);
// Forgets the arrays and objects of a context that is going.
void DropArraysOf(Driver& driver, Lane lane, Context* context);

}  // namespace atp::sim
