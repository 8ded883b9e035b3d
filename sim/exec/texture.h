// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces: what an object of the driver says about elements in memory, and how the
// instructions tex, suld and sust read and write them.
//
// Sample is pure; its rules are those of the CUDA programming guide, "Texture Fetching": fractions
// of linear filtering have 8 bits, neighbours are weighted in single precision. The layout of an
// array is ours: rows one after the other, as pitches say.
#pragma once

#include <cstdint>
#include <functional>

#include "ptx/opcode.h"
#include "sim/exec/exec.h"
#include "sim/exec/insn.h"

namespace atp::sim {

struct Texture {
  enum class Channel : uint8_t { kU8, kU16, kU32, kS8, kS16, kS32, kF16, kF32 };
  enum class Address : uint8_t { kWrap, kClamp, kMirror, kBorder };
  uint64_t base = 0;                        // address of the first element
  int dimensions = 1;                       // 1 to 3
  uint32_t extent[3] = {1, 1, 1};           // in elements
  uint64_t row_pitch = 0, slice_pitch = 0;  // bytes
  Channel channel = Channel::kF32;
  int channels = 1;  // 1, 2 or 4
  // Of textures only.
  Address address[3] = {Address::kClamp, Address::kClamp, Address::kClamp};
  bool linear = false;      // filtering
  bool normalized = false;  // coordinates from 0 to 1
  bool as_integer = false;  // integers are given as they are, not as fractions of their range
  bool is_buffer = false;   // linear memory: indices only, 0 outside
  float border[4] = {0, 0, 0, 0};
  bool is_surface = false;

  uint32_t channel_bytes() const;
  uint32_t element_bytes() const { return channel_bytes() * static_cast<uint32_t>(channels); }
};

namespace exec {

// Address of an element in this process, null when it cannot be read.
using TexelReader = std::function<const uint8_t*(uint64_t address, uint32_t bytes)>;

// One fetch. `coordinates` are floats, or integers when `by_index`. The four results are bits of
// floats, or of integers when the texture gives integers. False when `read` gave null.
bool Sample(const Texture& texture, const uint32_t coordinates[3], bool by_index,
            const TexelReader& read, uint32_t result[4]);

// Handlers of tex, suld and sust; null for a form that is not there.
Handler PickTexture(const ptx::Op& op);
// Dimensions that the opcode names, 0 when it names none.
int DimensionsOf(const ptx::Op& op);

}  // namespace exec
}  // namespace atp::sim
