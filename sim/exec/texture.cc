// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/texture.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace atp::sim {

uint32_t Texture::channel_bytes() const {
  switch (channel) {
    case Channel::kU8:
    case Channel::kS8:
      return 1;
    case Channel::kU16:
    case Channel::kS16:
    case Channel::kF16:
      return 2;
    default:
      return 4;
  }
}

namespace exec {
namespace {

constexpr float kFractions = 256;  // steps of a weight in linear filtering

float FromHalf(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits >> 15) << 31;
  const int exponent = bits >> 10 & 31;
  const uint32_t fraction = bits & 1023;
  float value = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                              : std::ldexp(static_cast<float>(fraction | 1024), exponent - 25);
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
}

template <class T>
T Load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Integers as fractions of their range; the smallest signed one gives -1 like its neighbour.
template <class T>
float Fraction(T value) {
  constexpr float kMost = static_cast<float>(std::numeric_limits<T>::max());
  return std::max(static_cast<float>(value) / kMost, -1.0f);
}

template <class T>
uint32_t Integer(const Texture& texture, const uint8_t* at) {
  const T value = Load<T>(at);
  if (texture.as_integer || sizeof(T) == 4)
    return static_cast<uint32_t>(static_cast<int64_t>(value));
  return std::bit_cast<uint32_t>(Fraction(value));
}

uint32_t Channel(const Texture& texture, const uint8_t* at) {
  switch (texture.channel) {
    case Texture::Channel::kU8:
      return Integer<uint8_t>(texture, at);
    case Texture::Channel::kU16:
      return Integer<uint16_t>(texture, at);
    case Texture::Channel::kU32:
      return Integer<uint32_t>(texture, at);
    case Texture::Channel::kS8:
      return Integer<int8_t>(texture, at);
    case Texture::Channel::kS16:
      return Integer<int16_t>(texture, at);
    case Texture::Channel::kS32:
      return Integer<int32_t>(texture, at);
    case Texture::Channel::kF16:
      return std::bit_cast<uint32_t>(FromHalf(Load<uint16_t>(at)));
    case Texture::Channel::kF32:
      break;
  }
  return Load<uint32_t>(at);
}

// Where an index lands after the rule for indices outside; negative = the border.
int64_t Place(Texture::Address rule, int64_t index, int64_t extent, bool normalized) {
  if (index >= 0 && index < extent) return index;
  if (rule == Texture::Address::kBorder) return -1;
  if (!normalized || rule == Texture::Address::kClamp)
    return std::clamp<int64_t>(index, 0, extent - 1);
  const int64_t period = rule == Texture::Address::kMirror ? 2 * extent : extent;
  int64_t in_period = index % period;
  if (in_period < 0) in_period += period;
  return in_period < extent ? in_period : period - 1 - in_period;
}

class Fetch {
 public:
  Fetch(const Texture& texture, const TexelReader& read) : texture_(texture), read_(read) {}

  bool At(const int64_t index[3], uint32_t result[4]) const {
    uint64_t address = texture_.base;
    const uint64_t steps[3] = {texture_.element_bytes(), texture_.row_pitch, texture_.slice_pitch};
    for (int d = 0; d < texture_.dimensions; ++d) {
      const auto rule = texture_.is_buffer ? Texture::Address::kBorder : texture_.address[d];
      const int64_t place = Place(rule, index[d], texture_.extent[d], texture_.normalized);
      if (place < 0) {
        for (int c = 0; c < 4; ++c) result[c] = std::bit_cast<uint32_t>(texture_.border[c]);
        return true;
      }
      address += static_cast<uint64_t>(place) * steps[d];
    }
    const uint8_t* at = read_(address, texture_.element_bytes());
    if (at == nullptr) return false;
    for (int c = 0; c < 4; ++c) {
      result[c] = c < texture_.channels
                      ? Channel(texture_, at + static_cast<uint32_t>(c) * texture_.channel_bytes())
                      : 0;
    }
    return true;
  }

  // Weighted over the corners of the square or cube around a place.
  bool Between(const float at[3], uint32_t result[4]) const {
    int64_t low[3] = {0, 0, 0};
    float weight[3] = {0, 0, 0};
    for (int d = 0; d < texture_.dimensions; ++d) {
      const float shifted = at[d] - 0.5f, whole = std::floor(shifted);
      low[d] = static_cast<int64_t>(whole);
      weight[d] = std::nearbyint((shifted - whole) * kFractions) / kFractions;
    }
    float sum[4] = {0, 0, 0, 0};
    for (int corner = 0; corner < 1 << texture_.dimensions; ++corner) {
      int64_t index[3] = {0, 0, 0};
      float share = 1;
      for (int d = 0; d < texture_.dimensions; ++d) {
        const int upper = corner >> d & 1;
        index[d] = low[d] + upper;
        share *= upper != 0 ? weight[d] : 1 - weight[d];
      }
      uint32_t texel[4];
      if (share == 0) continue;  // so that an infinity beside the place does not count
      if (!At(index, texel)) return false;
      for (int c = 0; c < 4; ++c) sum[c] += share * std::bit_cast<float>(texel[c]);
    }
    for (int c = 0; c < 4; ++c) result[c] = std::bit_cast<uint32_t>(sum[c]);
    return true;
  }

 private:
  const Texture& texture_;
  const TexelReader& read_;
};

// Keeps a coordinate where an index can be made of it; NaN reads the first element.
float Bounded(float value) {
  constexpr float kFar = 1e9f;
  return std::isnan(value) ? 0.0f : std::clamp(value, -kFar, kFar);
}

}  // namespace

bool Sample(const Texture& texture, const uint32_t coordinates[3], bool by_index,
            const TexelReader& read, uint32_t result[4]) {
  const Fetch fetch(texture, read);
  int64_t index[3] = {0, 0, 0};
  float at[3] = {0, 0, 0};
  for (int d = 0; d < texture.dimensions; ++d) {
    if (by_index) {
      index[d] = static_cast<int32_t>(coordinates[d]);
      continue;
    }
    const float extent = static_cast<float>(texture.extent[d]);
    const float value = std::bit_cast<float>(coordinates[d]);
    at[d] = Bounded(texture.normalized ? value * extent : value);
    index[d] = static_cast<int64_t>(std::floor(at[d]));
  }
  return by_index || !texture.linear ? fetch.At(index, result) : fetch.Between(at, result);
}

}  // namespace exec
}  // namespace atp::sim
