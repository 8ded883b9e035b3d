// SPDX-License-Identifier: Apache-2.0
// What tests of the interpreter share: a small device memory, and launches in one line.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "sim/exec/exec.h"
#include "sim/exec/variant.h"

namespace atp::sim {

// Allocations at made-up addresses, each with a guard gap, so that a wild access never hits another
// one by luck.
class TestMemory : public MemoryMap {
 public:
  bool Find(uint64_t address, Region* region) const override {
    auto after = regions_.upper_bound(address);
    if (after == regions_.begin()) return false;
    const Piece& piece = std::prev(after)->second;
    if (address >= piece.region.end) return false;
    *region = piece.region;
    return true;
  }

  uint64_t Allocate(uint64_t bytes, bool writable = true) {
    Piece piece;
    piece.storage = std::make_unique<uint8_t[]>(bytes + kPageSize);
    uint64_t address = next_;
    next_ += (bytes + 2 * kPageSize) / kPageSize * kPageSize + kPageSize;
    piece.region.begin = address;
    piece.region.end = address + bytes;
    piece.region.host_delta =
        static_cast<int64_t>(reinterpret_cast<uintptr_t>(piece.storage.get()) - address);
    piece.region.writable = writable;
    regions_[address] = std::move(piece);
    return address;
  }

  void Free(uint64_t address) { regions_.erase(address); }

  void* Host(uint64_t address) const {
    Region region;
    EXPECT_TRUE(Find(address, &region));
    return reinterpret_cast<void*>(address + static_cast<uint64_t>(region.host_delta));
  }
  template <class T>
  T* As(uint64_t address) const {
    return static_cast<T*>(Host(address));
  }

  template <class T>
  uint64_t Put(const std::vector<T>& values) {
    uint64_t address = Allocate(values.size() * sizeof(T));
    std::memcpy(Host(address), values.data(), values.size() * sizeof(T));
    return address;
  }
  template <class T>
  std::vector<T> Get(uint64_t address, size_t count) const {
    return std::vector<T>(As<T>(address), As<T>(address) + count);
  }

 private:
  static constexpr uint64_t kPageSize = 4096;
  struct Piece {
    std::unique_ptr<uint8_t[]> storage;
    Region region;
  };
  std::map<uint64_t, Piece> regions_;
  uint64_t next_ = 0x7f0000000000;
};

// Parameters in the order and with the alignment of a kernel's list.
class Params {
 public:
  template <class... T>
  explicit Params(T... values) {
    (Add(values), ...);
  }
  template <class T>
  void Add(T value) {
    size_t at = (bytes.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes.resize(at + sizeof(T));
    std::memcpy(&bytes[at], &value, sizeof(T));
  }
  std::vector<uint8_t> bytes;
};

inline LaunchConfig Grid(uint32_t grid, uint32_t block, uint32_t shared = 0) {
  LaunchConfig config;
  config.grid[0] = grid;
  config.block[0] = block;
  config.dynamic_shared_bytes = shared;
  config.max_warp_instructions = 200'000'000;  // a test that hangs should fail instead
  return config;
}

inline std::unique_ptr<Module> MustLoad(const std::string& ptx) {
  std::string error;
  std::unique_ptr<Module> module = Module::Load(ptx, &error);
  EXPECT_NE(module, nullptr) << error;
  return module;
}

inline std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Binds all globals to fresh memory with their initial values.
inline std::map<std::string, uint64_t> BindGlobals(Module* module, TestMemory* memory) {
  std::map<std::string, uint64_t> addresses;
  for (const GlobalInfo& global : module->globals()) {
    addresses[global.name] = memory->Allocate(global.bytes);
    module->BindGlobal(global.name, addresses[global.name]);
  }
  for (const GlobalInfo& global : module->globals()) {
    std::vector<uint8_t> image = module->InitialImage(global.name);
    std::copy(image.begin(), image.end(),
              static_cast<uint8_t*>(memory->Host(addresses[global.name])));
  }
  return addresses;
}

// All builds of the handlers that this processor can run.
class EachVariant : public testing::TestWithParam<const exec::Variant*> {
 protected:
  void SetUp() override { ASSERT_TRUE(exec::SelectVariant(GetParam()->name)); }
  void TearDown() override { exec::SelectVariant(exec::UsableVariants().back()->name); }
};
inline std::string VariantName(const testing::TestParamInfo<const exec::Variant*>& info) {
  return info.param->name;
}
#define ATP_FOR_EACH_VARIANT(Suite)                                                            \
  INSTANTIATE_TEST_SUITE_P(Variants, Suite,                                                    \
                           testing::ValuesIn(std::vector<const exec::Variant*>(                \
                               exec::UsableVariants().begin(), exec::UsableVariants().end())), \
                           VariantName)

}  // namespace atp::sim
