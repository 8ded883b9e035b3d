// SPDX-License-Identifier: Apache-2.0
// Opcodes that compilers rarely emit, each against the definition in the "PTX ISA" manual.
#include <cmath>

#include "tests/sim/exec/one_op.h"

namespace atp::sim {
namespace {

class Opcodes : public EachVariant {};
ATP_FOR_EACH_VARIANT(Opcodes);

using Words = std::vector<uint32_t>;

uint32_t NthSetBit(uint32_t mask, uint32_t base, int32_t offset) {
  if (offset == 0) return mask >> base & 1 ? base : ~0u;
  int left = std::abs(offset) - 1;
  for (int at = static_cast<int>(base); at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
    if ((mask >> at & 1) == 0) continue;
    if (left-- == 0) return static_cast<uint32_t>(at);
  }
  return ~0u;
}

TEST_P(Opcodes, FnsFindsTheNthSetBit) {
  constexpr size_t kCount = 4 * kThreads;
  const Words mask = Operands<uint32_t>(kCount, 1);
  Words base(kCount), offset(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    base[i] = static_cast<uint32_t>(i) % 32;
    offset[i] = static_cast<uint32_t>(static_cast<int>(i / 3 % 21) - 10);
  }
  const Words found = RunOp<uint32_t>("fns.b32 %d, %a, %b, %c;", mask, base, offset);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(found[i], NthSetBit(mask[i], base[i], static_cast<int32_t>(offset[i])))
        << std::hex << mask[i] << " from " << base[i] << " by " << static_cast<int>(offset[i]);
  }
}

uint32_t Extended(uint32_t value, uint32_t bits, bool is_signed) {
  if (bits == 0) return 0;
  if (bits >= 32) return value;
  const uint32_t low = value & ((1u << bits) - 1);
  return is_signed && (low >> (bits - 1) & 1) ? low | ~0u << bits : low;
}

TEST_P(Opcodes, SzextExtendsFromAnyWidth) {
  constexpr size_t kCount = 2 * kThreads;
  const Words value = Operands<uint32_t>(kCount, 2);
  Words bits(kCount);
  for (size_t i = 0; i < kCount; ++i) bits[i] = static_cast<uint32_t>(i) % 40;
  for (bool is_signed : {false, true}) {
    const std::string type = is_signed ? ".s32" : ".u32";
    const Words clamped = RunOp<uint32_t>("szext.clamp" + type + " %d, %a, %b;", value, bits, bits);
    const Words wrapped = RunOp<uint32_t>("szext.wrap" + type + " %d, %a, %b;", value, bits, bits);
    for (size_t i = 0; i < kCount; ++i) {
      ASSERT_EQ(clamped[i], Extended(value[i], bits[i], is_signed)) << bits[i];
      ASSERT_EQ(wrapped[i], Extended(value[i], bits[i] % 32, is_signed)) << bits[i];
    }
  }
}

uint32_t Mask(uint32_t first, uint32_t width, bool clamp) {
  uint64_t mask = 0;
  if (clamp && first >= 32) return 0;
  const uint32_t end = clamp && width >= 32 ? 32 : (first & 31) + (width & 31);
  for (uint32_t bit = first & 31; bit < std::min(end, 32u); ++bit) mask |= uint64_t{1} << bit;
  return static_cast<uint32_t>(mask);
}

TEST_P(Opcodes, BmskMakesMasks) {
  constexpr size_t kCount = 13 * kThreads;
  Words first(kCount), width(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    first[i] = static_cast<uint32_t>(i) % 40;
    width[i] = static_cast<uint32_t>(i / 40) % 40;
  }
  const Words clamped = RunOp<uint32_t>("bmsk.clamp.b32 %d, %a, %b;", first, width, width);
  const Words wrapped = RunOp<uint32_t>("bmsk.wrap.b32 %d, %a, %b;", first, width, width);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(clamped[i], Mask(first[i], width[i], true)) << first[i] << ", " << width[i];
    ASSERT_EQ(wrapped[i], Mask(first[i], width[i], false)) << first[i] << ", " << width[i];
  }
}

TEST_P(Opcodes, TestpTellsKindsOfFloats) {
  constexpr size_t kCount = 8 * kThreads;
  const std::vector<float> value = FloatOperands<float>(kCount, 3);
  const auto test = [&](const char* kind) {
    return RunOp<uint32_t>(std::string("testp.") + kind + ".f32 %p0, %a; selp.u32 %d, 1, 0, %p0;",
                           value, value, value);
  };
  const Words finite = test("finite"), infinite = test("infinite"), number = test("number"),
              nan = test("notanumber"), normal = test("normal"), subnormal = test("subnormal");
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(finite[i], std::isfinite(value[i])) << value[i];
    ASSERT_EQ(infinite[i], std::isinf(value[i])) << value[i];
    ASSERT_EQ(number[i], !std::isnan(value[i])) << value[i];
    ASSERT_EQ(nan[i], std::isnan(value[i])) << value[i];
    ASSERT_EQ(normal[i], std::isnormal(value[i])) << value[i];
    ASSERT_EQ(subnormal[i], std::fpclassify(value[i]) == FP_SUBNORMAL) << value[i];
  }
}

TEST_P(Opcodes, ReduxReducesOverTheWarp) {
  const Words value = Operands<uint32_t>(kThreads, 4);
  const auto all = [&](const std::string& op) {
    return RunOp<uint32_t>("redux.sync" + op + " %d, %a, 0xffffffff;", value, value, value);
  };
  const Words sum = all(".add.u32"), least = all(".min.s32"), most = all(".max.u32"),
              both = all(".and.b32"), any = all(".or.b32"), odd = all(".xor.b32");
  for (size_t i = 0; i < kThreads; ++i) {
    const uint32_t* warp = &value[i / 32 * 32];
    uint32_t s = 0, m = 0, a = ~0u, o = 0, x = 0;
    int32_t l = INT32_MAX;
    for (int k = 0; k < 32; ++k) {
      s += warp[k], m = std::max(m, warp[k]), a &= warp[k], o |= warp[k], x ^= warp[k];
      l = std::min(l, static_cast<int32_t>(warp[k]));
    }
    ASSERT_EQ(sum[i], s);
    ASSERT_EQ(static_cast<int32_t>(least[i]), l);
    ASSERT_EQ(most[i], m);
    ASSERT_EQ(both[i], a);
    ASSERT_EQ(any[i], o);
    ASSERT_EQ(odd[i], x);
  }
}

TEST_P(Opcodes, ElectChoosesOneLaneOfTheMask) {
  // Even lanes only: %x0 = leader, %x1 = whether this lane is it.
  const Words lane(kThreads, 0);
  const Words said = RunOp<uint32_t>(
      "mov.u32 %x2, %laneid; and.b32 %x3, %x2, 1; setp.eq.u32 %p1, %x3, 0; mov.u32 %d, 99;\n"
      "@!%p1 bra DONE;\n"
      "elect.sync %x0|%p0, 0x55555555; selp.u32 %x1, 100, 0, %p0; add.u32 %d, %x0, %x1;\n"
      "DONE:",
      lane, lane, lane);
  for (size_t i = 0; i < kThreads; i += 32) {
    const uint32_t leader = said[i + 2];  // not the leader unless it is lane 2
    int leaders = 0;
    for (size_t k = 0; k < 32; ++k) {
      if (k % 2 == 1) {
        ASSERT_EQ(said[i + k], 99u);
        continue;
      }
      leaders += said[i + k] >= 100;
      ASSERT_EQ(said[i + k] % 100, leader % 100) << "all lanes are told the same leader";
      if (said[i + k] >= 100) {
        ASSERT_EQ(said[i + k] % 100, k);
      }
    }
    ASSERT_EQ(leaders, 1);
  }
}

TEST_P(Opcodes, BrxJumpsByIndexLaneByLane) {
  Words index(kThreads);
  for (size_t i = 0; i < kThreads; ++i) index[i] = static_cast<uint32_t>(i * 7) % 4;
  const Words reached = RunOp<uint32_t>(
      "TARGETS: .branchtargets ZERO, ONE, TWO, ONE;\n"
      "brx.idx %a, TARGETS;\n"
      "ZERO: mov.u32 %d, 10; bra JOIN; ONE: mov.u32 %d, 11; bra JOIN; TWO: mov.u32 %d, 12;\n"
      "JOIN: add.u32 %d, %d, 100;",
      index, index, index);
  constexpr uint32_t kExpected[] = {110, 111, 112, 111};
  for (size_t i = 0; i < kThreads; ++i) ASSERT_EQ(reached[i], kExpected[index[i]]);
}

TEST_P(Opcodes, IsspacepTellsWhereAnAddressPoints) {
  const Words none(kThreads, 0);
  const Words said = RunOp<uint32_t>(
      ".shared .b32 tile[4]; .local .b32 own[4];\n"
      "mov.u64 %l0, tile; cvta.shared.u64 %l0, %l0; mov.u64 %l1, own; cvta.local.u64 %l1, %l1;\n"
      "isspacep.shared %p0, %l0; selp.u32 %d, 1, 0, %p0;\n"
      "isspacep.local %p0, %l1; selp.u32 %x0, 2, 0, %p0; add.u32 %d, %d, %x0;\n"
      "isspacep.global %p0, %q0; selp.u32 %x0, 4, 0, %p0; add.u32 %d, %d, %x0;\n"
      "isspacep.shared %p0, %q0; selp.u32 %x0, 8, 0, %p0; add.u32 %d, %d, %x0;\n"
      "isspacep.global %p0, %l0; selp.u32 %x0, 16, 0, %p0; add.u32 %d, %d, %x0;",
      none, none, none);
  for (uint32_t answer : said) ASSERT_EQ(answer, 7u);
}

TEST_P(Opcodes, BarriersReduceOverTheBlock) {
  Words value(kThreads);
  for (size_t i = 0; i < kThreads; ++i) value[i] = i % 3 == 0;
  const Words count = RunOp<uint32_t>(
      "setp.ne.u32 %p0, %a, 0; barrier.sync.aligned 1; bar.red.popc.u32 %d, 0, %p0;", value, value,
      value);
  const Words all = RunOp<uint32_t>(
      "setp.ne.u32 %p0, %a, 0; barrier.red.and.pred %p1, 0, %p0; selp.u32 %d, 1, 0, %p1;", value,
      value, value);
  const Words any = RunOp<uint32_t>(
      "setp.ne.u32 %p0, %a, 0; bar.red.or.pred %p1, 0, %p0; selp.u32 %d, 1, 0, %p1;", value, value,
      value);
  for (size_t i = 0; i < kThreads; ++i) {
    ASSERT_EQ(count[i], 43u);
    ASSERT_EQ(all[i], 0u);
    ASSERT_EQ(any[i], 1u);
  }
}

TEST_P(Opcodes, NanosleepTakesVirtualTime) {
  const Words time(kThreads, 5000);
  const std::vector<uint64_t> passed = RunOp<uint64_t>(
      "mov.u64 %l0, %globaltimer; nanosleep.u32 %a; mov.u64 %l1, %globaltimer;\n"
      "sub.u64 %d, %l1, %l0;",
      time, time, time);
  for (uint64_t ns : passed) ASSERT_GE(ns, 5000u);
}

// --- matrices

constexpr char kHeader[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 "
    "b, "
    ".param .u64 c) {\n.reg .b32 %r<16>, %s<8>; .reg .b64 %d<4>, %e<4>;\n"
    "ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [c]; mov.u32 %r0, %tid.x;\n";

std::vector<uint16_t> RunWarp(const std::string& body, const Words& a, size_t results) {
  TestMemory memory;
  std::unique_ptr<Module> module = MustLoad(kHeader + body + "\nret; }\n");
  if (module == nullptr) return std::vector<uint16_t>(results);
  const uint64_t out = memory.Put(std::vector<uint16_t>(results));
  const ExecResult run = module->Execute(
      "k", Grid(1, 32), Params(memory.Put(a), uint64_t{0}, out).bytes, memory, nullptr);
  EXPECT_EQ(run.status, ExecStatus::kOk) << run.message;
  return memory.Get<uint16_t>(out, results);
}

// Element (row, column) of the fragment of an 8x8 matrix: lane 4 * row + column / 2, half column
// % 2.
Words Fragment(uint32_t matrix) {
  Words lanes(32);
  for (uint32_t lane = 0; lane < 32; ++lane) {
    const uint32_t first = matrix * 64 + lane / 4 * 8 + lane % 4 * 2;
    lanes[lane] = first | (first + 1) << 16;
  }
  return lanes;
}

TEST_P(Opcodes, StmatrixStoresRowsAndTransposedOnes) {
  Words fragments;
  for (uint32_t matrix = 0; matrix < 4; ++matrix) {
    const Words one = Fragment(matrix);
    fragments.insert(fragments.end(), one.begin(), one.end());
  }
  for (bool transposed : {false, true}) {
    // Lane 8 m + r gives the address of row r of matrix m.
    const std::vector<uint16_t> stored =
        RunWarp(std::string(".shared .align 16 .b8 tile[512];\n"
                            "mad.wide.u32 %e0, %r0, 4, %d0; ld.global.u32 %s0, [%e0];\n"
                            "ld.global.u32 %s1, [%e0+128]; ld.global.u32 %s2, [%e0+256];\n"
                            "ld.global.u32 %s3, [%e0+384];\n"
                            "mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 16, %r1;\n") +
                    "stmatrix.sync.aligned.m8n8.x4" + (transposed ? ".trans" : "") +
                    ".shared.b16 [%r1], {%s0, %s1, %s2, %s3}; bar.warp.sync 0xffffffff;\n"
                    "ld.shared.v4.u32 {%s4, %s5, %s6, %s7}, [%r1];\n"
                    "mad.wide.u32 %e1, %r0, 16, %d2; st.global.v4.u32 [%e1], {%s4, %s5, %s6, %s7};",
                fragments, 256);
    for (uint16_t matrix = 0; matrix < 4; ++matrix) {
      for (uint16_t row = 0; row < 8; ++row) {
        for (uint16_t column = 0; column < 8; ++column) {
          const int expected = matrix * 64 + (transposed ? column * 8 + row : row * 8 + column);
          ASSERT_EQ(stored[matrix * 64 + row * 8 + column], expected)
              << "matrix " << matrix << ", row " << row << ", column " << column;
        }
      }
    }
  }
}

TEST_P(Opcodes, MovmatrixTransposesInRegisters) {
  const std::vector<uint16_t> moved = RunWarp(
      "mad.wide.u32 %e0, %r0, 4, %d0; ld.global.u32 %s0, [%e0];\n"
      "movmatrix.sync.aligned.m8n8.trans.b16 %s1, %s0;\n"
      "mad.wide.u32 %e1, %r0, 4, %d2; st.global.u32 [%e1], %s1;",
      Fragment(0), 64);
  for (uint32_t row = 0; row < 8; ++row) {
    for (uint32_t column = 0; column < 8; ++column)
      ASSERT_EQ(moved[row * 8 + column], column * 8 + row);
  }
}

struct FourBits {
  int m, k;
  bool a_signed, b_signed;
};

int Nibble(uint32_t bits, bool is_signed) {
  const int value = static_cast<int>(bits & 15);
  return is_signed && value >= 8 ? value - 16 : value;
}

// mma of 4-bit integers: register r of a lane holds eight neighbours in k of one row; rows go with
// lane / 4 (and 8 further on), columns of the result with pairs of lane % 4.
TEST_P(Opcodes, MmaOfFourBitIntegers) {
  for (const FourBits& shape : {FourBits{8, 32, true, true}, FourBits{8, 32, false, true},
                                FourBits{16, 32, false, false}, FourBits{16, 64, true, false}}) {
    const int a_registers = shape.m / 8 * shape.k / 32, b_registers = shape.k / 32,
              c_registers = shape.m / 8 * 2;
    const Words a = Operands<uint32_t>(32 * 4, 5), b = Operands<uint32_t>(32 * 4, 6);
    const auto list = [](const char* name, int count) {
      std::string text = "{";
      for (int i = 0; i < count; ++i)
        text += (i ? ", " : "") + std::string(name) + std::to_string(i);
      return text + "}";
    };
    std::string body = ".reg .b32 %a<4>, %b<4>, %c<4>;\n";
    for (int i = 0; i < 4; ++i) {
      const std::string n = std::to_string(i), at = std::to_string(128 * i);
      body += "mad.wide.u32 %e0, %r0, 4, %d0; ld.global.u32 %a" + n + ", [%e0+" + at + "];\n" +
              "mad.wide.u32 %e1, %r0, 4, %d1; ld.global.u32 %b" + n + ", [%e1+" + at + "];\n" +
              "mov.u32 %c" + n + ", " + std::to_string(i + 1) + ";\n";
    }
    body += "mma.sync.aligned.m" + std::to_string(shape.m) + "n8k" + std::to_string(shape.k) +
            ".row.col.s32." + (shape.a_signed ? "s4" : "u4") + "." +
            (shape.b_signed ? "s4" : "u4") + ".s32 " + list("%c", c_registers) + ", " +
            list("%a", a_registers) + ", " + list("%b", b_registers) + ", " +
            list("%c", c_registers) + ";\n";
    for (int i = 0; i < c_registers; ++i) {
      body += "mad.wide.u32 %e2, %r0, 4, %d2; st.global.u32 [%e2+" + std::to_string(128 * i) +
              "], %c" + std::to_string(i) + ";\n";
    }
    TestMemory memory;
    std::unique_ptr<Module> module = MustLoad(kHeader + body + "ret; }\n");
    ASSERT_NE(module, nullptr);
    const uint64_t out = memory.Put(Words(128));
    const ExecResult run = module->Execute(
        "k", Grid(1, 32), Params(memory.Put(a), memory.Put(b), out).bytes, memory, nullptr);
    ASSERT_EQ(run.status, ExecStatus::kOk) << run.message;
    const auto element_a = [&](int row, int k) {
      const int lane = row % 8 * 4 + k / 8 % 4;
      const int reg = row / 8 + k / 32 * (shape.m / 8);
      return Nibble(a[static_cast<size_t>(reg * 32 + lane)] >> (4 * (k % 8)), shape.a_signed);
    };
    const auto element_b = [&](int k, int column) {
      const int lane = column * 4 + k / 8 % 4;
      return Nibble(b[static_cast<size_t>(k / 32 * 32 + lane)] >> (4 * (k % 8)), shape.b_signed);
    };
    for (int row = 0; row < shape.m; ++row) {
      for (int column = 0; column < 8; ++column) {
        const int reg = row / 8 * 2 + column % 2, lane = row % 8 * 4 + column / 2;
        int sum = reg + 1;
        for (int k = 0; k < shape.k; ++k) sum += element_a(row, k) * element_b(k, column);
        ASSERT_EQ(memory.As<int>(out)[reg * 32 + lane], sum)
            << "m" << shape.m << "k" << shape.k << ", row " << row << ", column " << column;
      }
    }
  }
}

}  // namespace
}  // namespace atp::sim
