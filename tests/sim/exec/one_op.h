// SPDX-License-Identifier: Apache-2.0
// Runs a piece of PTX over arrays of operands: `body` computes %d from %a, %b and %c, one element a
// thread.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "tests/sim/exec/support.h"

namespace atp::sim {

template <class T>
std::string BitsType() {
  return ".b" + std::to_string(8 * sizeof(T));
}

// Registers are untyped (.b16, .b32, .b64); %p0..%p3, %x0..%x7 (32 bits), %l0..%l7 (64 bits) and
// %h0..%h7 (16 bits) are free to use.
template <class D, class A, class B, class C>
std::string OneOpPtx(const std::string& body) {
  auto load = [](const std::string& type, size_t bytes, char name, int k) {
    std::string r(1, name), n = std::to_string(k);
    return "ld.param.u64 %q" + n + ", [" + r + "];\n mad.wide.u32 %q" + n + ", %i, " +
           std::to_string(bytes) + ", %q" + n + ";\n" + "ld.global" + type + " %" + r + ", [%q" +
           n + "];\n";
  };
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry op(.param .u64 a, .param "
         ".u64 b, .param .u64 c, .param .u64 d)\n{\n"
         ".reg .b32 %i, %t, %u; .reg .b64 %q<4>; .reg .pred %p<4>; .reg .b32 %x<8>; .reg .b64 "
         "%l<8>; .reg .b16 %h<8>;\n"
         ".reg " +
         BitsType<A>() + " %a; .reg " + BitsType<B>() + " %b; .reg " + BitsType<C>() +
         " %c; .reg " + BitsType<D>() +
         " %d;\n"
         "mov.u32 %t, %ctaid.x; mov.u32 %u, %ntid.x; mov.u32 %i, %tid.x; mad.lo.u32 %i, %t, %u, "
         "%i;\n" +
         load(BitsType<A>(), sizeof(A), 'a', 0) + load(BitsType<B>(), sizeof(B), 'b', 1) +
         load(BitsType<C>(), sizeof(C), 'c', 2) + body +
         "\nld.param.u64 %q3, [d];\n mad.wide.u32 %q3, %i, " + std::to_string(sizeof(D)) +
         ", %q3;\nst.global" + BitsType<D>() + " [%q3], %d;\nret;\n}\n";
}

inline constexpr uint32_t kThreads = 128;

template <class D, class A, class B, class C>
std::vector<D> RunOp(const std::string& body, const std::vector<A>& a, const std::vector<B>& b,
                     const std::vector<C>& c) {
  TestMemory memory;
  std::unique_ptr<Module> module = MustLoad(OneOpPtx<D, A, B, C>(body));
  std::vector<D> result(a.size());
  if (module == nullptr) return result;
  EXPECT_EQ(a.size() % kThreads, 0u);
  uint64_t out = memory.Put(result);
  Params params(memory.Put(a), memory.Put(b), memory.Put(c), out);
  ExecResult run = module->Execute("op", Grid(static_cast<uint32_t>(a.size() / kThreads), kThreads),
                                   params.bytes, memory, nullptr);
  EXPECT_EQ(run.status, ExecStatus::kOk) << run.message << "\n" << body;
  return memory.Get<D>(out, a.size());
}

// Random bit patterns mixed with small values and the corners of the type.
template <class T>
std::vector<T> Operands(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    uint64_t bits = random();
    switch (random() % 8) {
      case 0:
        bits = random() % 16;
        break;
      case 1:
        bits = 0 - random() % 16;
        break;
      case 2:
        bits = uint64_t{1} << (random() % (8 * sizeof(T)));
        break;
      case 3:
        bits = (uint64_t{1} << (random() % (8 * sizeof(T)))) - 1;
        break;
      default:
        break;
    }
    std::memcpy(&value, &bits, sizeof(T));
  }
  return values;
}

// Floats: every exponent, with zeros, subnormals, infinities, NaN, halves between integers and near
// neighbours.
template <class T>
std::vector<T> FloatOperands(size_t count, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    uint64_t bits = random();
    std::memcpy(&value, &bits, sizeof(T));
    T unit = static_cast<T>(static_cast<double>(random() % (1u << 24)) / (1u << 12));
    switch (random() % 10) {
      case 0:
        value = T(0);
        break;
      case 1:
        value = std::numeric_limits<T>::infinity();
        break;
      case 2:
        value = std::numeric_limits<T>::denorm_min() * static_cast<T>(random() % 1000);
        break;
      case 3:
        value = static_cast<T>(random() % 100) + T(0.5);
        break;
      case 4:
        value = unit;
        break;
      case 5:
        value = T(1) + std::numeric_limits<T>::epsilon() * static_cast<T>(random() % 8);
        break;
      case 6:
        value = std::numeric_limits<T>::max();
        break;
      default:
        break;
    }
    if (random() % 2) value = -value;
  }
  return values;
}

}  // namespace atp::sim
