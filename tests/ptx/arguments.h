// SPDX-License-Identifier: Apache-2.0
// Arguments as the driver lays them out, and where the pointers among them are.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace atp::ptx {

class Arguments {
 public:
  template <typename T>
  Arguments& Add(T value) {
    bytes_.resize((bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T));
    if constexpr (std::is_pointer_v<T>) pointers_.push_back(static_cast<uint32_t>(bytes_.size()));
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(&bytes_[at], &value, sizeof value);
    return *this;
  }
  Arguments& Pointer(uint64_t address) { return Add(reinterpret_cast<char*>(address)); }
  Arguments& PointerAt(uint32_t byte) {
    pointers_.push_back(byte);
    return *this;
  }
  const std::vector<char>& bytes() const { return bytes_; }
  const std::vector<uint32_t>& pointers() const { return pointers_; }

 private:
  std::vector<char> bytes_;
  std::vector<uint32_t> pointers_;
};

}  // namespace atp::ptx
