// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/texture.h"

#include <bit>
#include <cmath>
#include <random>

#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

using Address = Texture::Address;
using Channel = Texture::Channel;

uint32_t Bits(float value) { return std::bit_cast<uint32_t>(value); }
float Float(uint32_t bits) { return std::bit_cast<float>(bits); }

// A row, plane or cube of elements in a vector.
template <class T>
class Elements {
 public:
  Elements(std::vector<T> values, uint32_t width, uint32_t height, uint32_t depth, int dimensions,
           Channel channel, int channels = 1)
      : values_(std::move(values)) {
    texture.base = 0x1000;
    texture.dimensions = dimensions;
    texture.extent[0] = width, texture.extent[1] = height, texture.extent[2] = depth;
    texture.channel = channel;
    texture.channels = channels;
    texture.row_pitch = width * texture.element_bytes();
    texture.slice_pitch = height * texture.row_pitch;
  }
  std::vector<uint32_t> Fetch(std::vector<float> at) const {
    std::vector<uint32_t> bits;
    for (float value : at) bits.push_back(Bits(value));
    return Read(bits, false);
  }
  float At(std::vector<float> at) const { return Float(Fetch(std::move(at))[0]); }
  std::vector<uint32_t> ByIndex(std::vector<int> at) const {
    return Read(std::vector<uint32_t>(at.begin(), at.end()), true);
  }
  Texture texture;

 private:
  std::vector<uint32_t> Read(std::vector<uint32_t> at, bool by_index) const {
    at.resize(3);
    std::vector<uint32_t> result(4);
    const exec::TexelReader read = [&](uint64_t address, uint32_t bytes) -> const uint8_t* {
      const uint64_t offset = address - texture.base;
      EXPECT_LE(offset + bytes, values_.size() * sizeof(T));
      return reinterpret_cast<const uint8_t*>(values_.data()) + offset;
    };
    EXPECT_TRUE(exec::Sample(texture, at.data(), by_index, read, result.data()));
    return result;
  }
  std::vector<T> values_;
};

Elements<float> Row(std::vector<float> values) {
  const auto width = static_cast<uint32_t>(values.size());
  return Elements<float>(std::move(values), width, 1, 1, 1, Channel::kF32);
}

TEST(Texture, APointIsTheElementWhoseCellItLiesIn) {
  Elements<float> row = Row({10, 20, 30, 40});
  EXPECT_EQ(row.At({0.0f}), 10);
  EXPECT_EQ(row.At({0.99f}), 10);
  EXPECT_EQ(row.At({1.0f}), 20);
  EXPECT_EQ(row.At({3.5f}), 40);
  row.texture.normalized = true;
  EXPECT_EQ(row.At({0.25f}), 20);
  EXPECT_EQ(row.At({0.74f}), 30);
}

TEST(Texture, PlacesOutsideFollowTheRuleOfTheirDimension) {
  Elements<float> row = Row({10, 20, 30, 40});
  row.texture.normalized = true;
  const auto at = [&](Address rule, float x) {
    row.texture.address[0] = rule;
    return row.At({x});
  };
  EXPECT_EQ(at(Address::kClamp, -3.0f), 10);
  EXPECT_EQ(at(Address::kClamp, 9.0f), 40);
  EXPECT_EQ(at(Address::kWrap, 1.3f), 20);
  EXPECT_EQ(at(Address::kWrap, -0.1f), 40);
  EXPECT_EQ(at(Address::kMirror, 1.1f), 40);
  EXPECT_EQ(at(Address::kMirror, -0.3f), 20);
  EXPECT_EQ(at(Address::kMirror, 2.1f), 10);
  row.texture.border[0] = 7;
  EXPECT_EQ(at(Address::kBorder, 1.01f), 7);
  EXPECT_EQ(at(Address::kBorder, 0.5f), 30);
  row.texture.normalized = false;  // then wrap and mirror are clamp
  EXPECT_EQ(at(Address::kWrap, 5.0f), 40);
  EXPECT_EQ(at(Address::kMirror, -2.0f), 10);
}

TEST(Texture, LinearFilteringWeighsNeighboursInStepsOfA256th) {
  Elements<float> row = Row({0, 1, 3, 3});
  row.texture.linear = true;
  EXPECT_EQ(row.At({0.5f}), 0) << "the middle of an element is that element";
  EXPECT_EQ(row.At({1.0f}), 0.5f);
  EXPECT_EQ(row.At({1.75f}), 1.5f);
  EXPECT_EQ(row.At({0.0f}), 0) << "its neighbour outside is the element itself";
  EXPECT_EQ(row.At({0.5f + 1.0f / 512 - 1e-5f}), 0) << "less than half a step";
  EXPECT_EQ(row.At({0.5f + 1.0f / 256}), 1.0f / 256);
  EXPECT_EQ(row.At({std::nanf("")}), 0);
}

TEST(Texture, LinearFilteringOfAPlaneAndACubeEqualsTheSumWrittenOut) {
  std::mt19937 random(3);
  constexpr uint32_t kSide = 5;
  std::vector<float> values(kSide * kSide * kSide);
  for (float& value : values) value = static_cast<float>(random() % 1000);
  for (int dimensions = 2; dimensions <= 3; ++dimensions) {
    Elements<float> elements(values, kSide, kSide, dimensions == 3 ? kSide : 1, dimensions,
                             Channel::kF32);
    elements.texture.linear = true;
    for (int round = 0; round < 100; ++round) {
      float at[3], fraction[3];
      int low[3] = {0, 0, 0};
      for (int d = 0; d < 3; ++d) {
        low[d] = d < dimensions ? static_cast<int>(random() % (kSide - 1)) : 0;
        fraction[d] = d < dimensions ? static_cast<float>(random() % 256) / 256 : 0;
        at[d] = static_cast<float>(low[d]) + fraction[d] + 0.5f;
      }
      double expected = 0;
      for (int corner = 0; corner < 8; ++corner) {
        double share = 1;
        uint32_t index = 0, step = 1;
        for (int d = 0; d < 3; ++d) {
          const int upper = corner >> d & 1;
          share *= upper != 0 ? fraction[d] : 1 - fraction[d];
          index += static_cast<uint32_t>(low[d] + upper) * step;
          step *= kSide;
        }
        if (share > 0) expected += share * values[index];
      }
      EXPECT_NEAR(elements.At({at[0], at[1], at[2]}), expected, 1e-3);
    }
  }
}

TEST(Texture, IntegersComeAsTheyAreOrAsFractionsOfTheirRange) {
  Elements<uint8_t> bytes({0, 128, 255, 1}, 4, 1, 1, 1, Channel::kU8);
  EXPECT_EQ(bytes.At({2.0f}), 1.0f);
  EXPECT_FLOAT_EQ(bytes.At({1.0f}), 128.0f / 255);
  bytes.texture.as_integer = true;
  EXPECT_EQ(bytes.Fetch({2.0f})[0], 255u);
  Elements<int16_t> shorts({-32768, -32767, 32767, 0}, 4, 1, 1, 1, Channel::kS16);
  EXPECT_EQ(shorts.At({0.0f}), -1.0f);
  EXPECT_EQ(shorts.At({1.0f}), -1.0f);
  EXPECT_EQ(shorts.At({2.0f}), 1.0f);
  shorts.texture.as_integer = true;
  EXPECT_EQ(static_cast<int32_t>(shorts.Fetch({0.0f})[0]), -32768);
  Elements<uint32_t> words({7, 0xdeadbeef}, 2, 1, 1, 1, Channel::kU32);
  EXPECT_EQ(words.Fetch({1.0f})[0], 0xdeadbeefu) << "32-bit integers have no fractions";
}

TEST(Texture, HalvesAreWidenedExactly) {
  Elements<uint16_t> halves({0x3c00, 0xc000, 0x0001, 0x7c00, 0x8000, 0x7bff}, 6, 1, 1, 1,
                            Channel::kF16);
  EXPECT_EQ(halves.At({0.0f}), 1.0f);
  EXPECT_EQ(halves.At({1.0f}), -2.0f);
  EXPECT_EQ(halves.At({2.0f}), std::ldexp(1.0f, -24));
  EXPECT_TRUE(std::isinf(halves.At({3.0f})));
  EXPECT_TRUE(std::signbit(halves.At({4.0f})));
  EXPECT_EQ(halves.At({5.0f}), 65504.0f);
}

TEST(Texture, IndicesOutsideABufferReadZero) {
  Elements<float> row = Row({10, 20});
  row.texture.is_buffer = true;
  EXPECT_EQ(Float(row.ByIndex({1})[0]), 20);
  EXPECT_EQ(row.ByIndex({2})[0], 0u);
  EXPECT_EQ(row.ByIndex({-1})[0], 0u);
}

// Memory with one texture or surface, under handle 5.
class ObjectMemory : public TestMemory {
 public:
  bool FindTexture(uint64_t handle, Texture* found) const override {
    if (handle != 5) return false;
    *found = texture;
    return true;
  }
  Texture texture;
};

constexpr char kHeader[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

// Each of 64 threads reads {tid % 8, tid / 8} and writes four floats.
std::string PlanePtx() {
  return std::string(kHeader) +
         ".visible .entry read(.param .u64 object, .param .u64 out)\n{\n"
         ".reg .b64 %rd<8>; .reg .b32 %r<8>; .reg .f32 %f<8>;\n"
         "ld.param.u64 %rd1, [object]; ld.param.u64 %rd2, [out];\n"
         "mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7; shr.u32 %r3, %r1, 3;\n"
         "cvt.rn.f32.u32 %f1, %r2; cvt.rn.f32.u32 %f2, %r3;\n"
         "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f1, %f2}];\n"
         "mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd2, %rd3;\n"
         "st.global.v4.f32 [%rd4], {%f1, %f2, %f3, %f4};\nret;\n}\n";
}

ObjectMemory PlaneOfFloats(uint64_t* base) {
  ObjectMemory memory;
  std::vector<float> values;
  for (int i = 0; i < 8 * 8 * 4; ++i) values.push_back(static_cast<float>(i));
  *base = memory.Put(values);
  Texture& t = memory.texture;
  t.base = *base;
  t.dimensions = 2;
  t.extent[0] = t.extent[1] = 8;
  t.channels = 4;
  t.row_pitch = 8 * 16;
  return memory;
}

TEST(TextureInstruction, ReadsFourChannelsAndTouchesWhatItReads) {
  uint64_t base = 0;
  ObjectMemory memory = PlaneOfFloats(&base);
  const uint64_t out = memory.Put(std::vector<float>(256));
  auto module = MustLoad(PlanePtx());
  const ExecResult result =
      module->Execute("read", Grid(1, 64), Params(uint64_t{5}, out).bytes, memory, nullptr);
  ASSERT_EQ(result.status, ExecStatus::kOk) << result.message;
  const std::vector<float> read = memory.Get<float>(out, 256);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(read[static_cast<size_t>(i)], static_cast<float>(i));
  bool touched = false;
  for (const PageTouch& touch : result.waves[0].pages) {
    if (touch.page == base >> kPageBits) touched = (touch.flags & PageTouch::kRead) != 0;
  }
  EXPECT_TRUE(touched);
}

TEST(TextureInstruction, AHandleThatIsNoTextureOfThatShapeIsIllegal) {
  uint64_t base = 0;
  ObjectMemory memory = PlaneOfFloats(&base);
  const uint64_t out = memory.Put(std::vector<float>(256));
  auto module = MustLoad(PlanePtx());
  const auto run = [&](uint64_t handle) {
    return module->Execute("read", Grid(1, 64), Params(handle, out).bytes, memory, nullptr);
  };
  EXPECT_EQ(run(6).status, ExecStatus::kIllegalAddress);
  memory.texture.dimensions = 3;
  EXPECT_EQ(run(5).status, ExecStatus::kIllegalAddress);
  memory.texture.dimensions = 2;
  memory.texture.is_surface = true;
  EXPECT_NE(run(5).message.find("texture object"), std::string::npos);
}

// Thread x moves the word at x + shift of its row to x, with the given rule for what is outside.
std::string SurfacePtx(const std::string& rule) {
  return std::string(kHeader) +
         ".visible .entry move(.param .u64 object, .param .u32 shift)\n{\n"
         ".reg .b64 %rd<8>; .reg .b32 %r<12>;\n"
         "ld.param.u64 %rd1, [object]; ld.param.u32 %r1, [shift];\n"
         "mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; shl.b32 %r4, %r2, 2;\n"
         "add.u32 %r5, %r2, %r1; shl.b32 %r5, %r5, 2;\n"
         "suld.b.2d.b32." +
         rule +
         " {%r6}, [%rd1, {%r5, %r3}];\n"
         "bar.sync 0;\n"
         "sust.b.2d.b32.trap [%rd1, {%r4, %r3}], {%r6};\nret;\n}\n";
}

TEST(SurfaceInstruction, OutsideIsATrapTheNearestOrZero) {
  ObjectMemory memory;
  std::vector<uint32_t> values(32);
  for (uint32_t i = 0; i < 32; ++i) values[i] = i + 1;
  Texture& t = memory.texture;
  t.base = memory.Put(values);
  t.dimensions = 2;
  t.extent[0] = 16, t.extent[1] = 2;
  t.channel = Channel::kU32;
  t.row_pitch = 64;
  t.is_surface = true;
  const auto run = [&](const std::string& rule) {
    return MustLoad(SurfacePtx(rule))
        ->Execute("move", Grid(2, 16), Params(uint64_t{5}, uint32_t{1}).bytes, memory, nullptr);
  };
  EXPECT_EQ(run("trap").status, ExecStatus::kTrap);
  ASSERT_EQ(run("clamp").status, ExecStatus::kOk);
  std::vector<uint32_t> now = memory.Get<uint32_t>(t.base, 32);
  EXPECT_EQ(now[0], 2u);
  EXPECT_EQ(now[15], 16u) << "nothing to its right, so itself";
  EXPECT_EQ(now[16], 18u);
  ASSERT_EQ(run("zero").status, ExecStatus::kOk);
  now = memory.Get<uint32_t>(t.base, 32);
  EXPECT_EQ(now[15], 0u);
}

TEST(TextureInstruction, OtherFormsAreRefusedAtLoadWithOpcodeKernelAndLine) {
  for (const char* opcode : {"tex.a2d.v4.f32.f32", "tex.cube.v4.f32.f32", "tex.level.2d.v4.f32.f32",
                             "tld4.r.2d.v4.f32.f32", "tex.2d.v4.f16.f32", "suld.b.a2d.b32.trap",
                             "sust.p.2d.b32.trap", "txq.width.b32"}) {
    const std::string ptx = std::string(kHeader) +
                            ".visible .entry k(.param .u64 o)\n{\n.reg .b64 %rd<2>; .reg .f32 "
                            "%f<9>;\nld.param.u64 %rd1, [o];\n" +
                            opcode + " {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];\nret;\n}\n";
    std::string error;
    EXPECT_EQ(Module::Load(ptx, &error), nullptr) << opcode;
    EXPECT_NE(error.find(opcode), std::string::npos) << error;
    EXPECT_NE(error.find("k"), std::string::npos) << error;
    EXPECT_NE(error.find("line 8"), std::string::npos) << error;
  }
}

TEST(TextureInstruction, WrongOperandsAreReportedNotRun) {
  for (const char* statement :
       {"tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1];",
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];",
        "tex.2d.v4.f32.f32 {%f1, %f2}, [%rd1, {%f5, %f6}];",
        "ld.global.f32 %f1, [%rd1, {%f5, %f6}];", "suld.b.1d.v2.b32.trap {%f1}, [%rd1, {%f5}];"}) {
    const std::string ptx = std::string(kHeader) +
                            ".visible .entry k(.param .u64 o)\n{\n.reg .b64 %rd<2>; .reg .f32 "
                            "%f<9>;\nld.param.u64 %rd1, [o];\n" +
                            statement + "\nret;\n}\n";
    std::string error;
    auto module = Module::Load(ptx, &error);
    if (module == nullptr) continue;  // refused even earlier
    TestMemory memory;
    const ExecResult result =
        module->Execute("k", Grid(1, 32), Params(uint64_t{5}).bytes, memory, nullptr);
    EXPECT_EQ(result.status, ExecStatus::kUnsupported) << statement;
  }
}

}  // namespace
}  // namespace atp::sim
