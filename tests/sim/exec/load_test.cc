// SPDX-License-Identifier: Apache-2.0
// Loading: what a module tells about itself, what is refused and how, and text that is broken in
// every way.
#include <random>
#include <sstream>

#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

constexpr char kHeader[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

std::string ErrorOf(const std::string& text) {
  std::string error;
  EXPECT_EQ(Module::Load(text, &error), nullptr);
  return error;
}

TEST(Load, ParametersHaveTheOffsetsOfTheAbi) {
  std::unique_ptr<Module> module = MustLoad(
      std::string(kHeader) +
      ".visible .entry k(.param .u8 a, .param .u16 b, .param .u32 c, .param .u64 d, .param .u64 "
      ".ptr .global .align 1 e, "
      ".param .align 8 .b8 f[32], .param .u8 g) .maxntid 256, 1, 1 .minnctapersm 2 { ret; }\n");
  ASSERT_NE(module, nullptr);
  const KernelInfo& info = module->kernels()[0];
  uint32_t offsets[] = {0, 2, 4, 8, 16, 24, 56}, sizes[] = {1, 2, 4, 8, 8, 32, 1};
  ASSERT_EQ(info.params.size(), 7u);
  for (size_t k = 0; k < 7; ++k) {
    EXPECT_EQ(info.params[k].offset, offsets[k]);
    EXPECT_EQ(info.params[k].size, sizes[k]);
  }
  EXPECT_TRUE(info.params[4].is_pointer);
  EXPECT_FALSE(info.params[5].is_pointer);
  EXPECT_EQ(info.param_bytes, 57u);
  EXPECT_EQ(info.max_threads_per_block, 256u);
}

TEST(Load, GlobalsAndSharedMemoryAreDescribed) {
  std::unique_ptr<Module> module =
      MustLoad(std::string(kHeader) +
               ".visible .global .attribute(.managed) .align 4 .u32 counter = 7;\n.const .align 8 "
               ".f64 pi[2] = {0d400921fb54442d18, 1.5};\n"
               ".shared .align 16 .b8 tile[100];\n.extern .shared .align 16 .b8 "
               "dynamic[];\n.global .u64 where = counter+4;\n"
               ".visible .entry k(.param .u64 p) .reqntid 32, 2 { .reg .b32 %r; .reg .b64 %d; "
               ".shared .f32 own[8]; mov.u32 %r, tile; mov.u32 %r, dynamic; "
               "mov.u32 %r, own; ret; }\n");
  ASSERT_NE(module, nullptr);
  ASSERT_EQ(module->globals().size(), 3u);
  EXPECT_TRUE(module->globals()[0].is_managed);
  EXPECT_EQ(module->globals()[0].initial, (std::vector<uint8_t>{7, 0, 0, 0}));
  EXPECT_TRUE(module->globals()[1].is_const);
  double pi[2];
  std::memcpy(pi, module->globals()[1].initial.data(), 16);
  EXPECT_EQ(pi[0], 3.141592653589793);
  EXPECT_EQ(pi[1], 1.5);
  module->BindGlobal("counter", 0x1000);
  uint64_t where;
  std::memcpy(&where, module->InitialImage("where").data(), 8);
  EXPECT_EQ(where, 0x1004u);
  EXPECT_GE(module->kernels()[0].static_shared_bytes, 132u);
  EXPECT_EQ(module->kernels()[0].required_block[1], 2u);
  EXPECT_EQ(module->kernels()[0].max_threads_per_block, 64u);
}

TEST(Load, AnElementOfAnArrayIsNamedByItsIndexInBrackets) {
  constexpr char kBefore[] =
      ".visible .entry k(.param .u64 out) { .reg .b64 %d<4>; .shared .align 16 .b32 tile[8]; "
      "ld.param.u64 %d0, [out]; mov.u64 %d1, tile; mov.u64 %d2, ";
  std::unique_ptr<Module> module =
      MustLoad(std::string(kHeader) + kBefore +
               "tile[3]; sub.u64 %d3, %d2, %d1; st.global.u64 [%d0], %d3; ret; }\n");
  ASSERT_NE(module, nullptr);
  TestMemory memory;
  const uint64_t out = memory.Put(std::vector<uint64_t>(1));
  ExecResult run = module->Execute("k", Grid(1, 1), Params(out).bytes, memory, nullptr);
  EXPECT_EQ(run.status, ExecStatus::kOk) << run.message;
  EXPECT_EQ(memory.As<uint64_t>(out)[0], 12u);
  // Bodies are read when they are first needed, so that is when a mistake in one is found.
  for (const char* broken : {"tile[%d0]; }\n", "tile[3; }\n", "tile[x]; }\n"}) {
    module = MustLoad(std::string(kHeader) + kBefore + broken);
    ASSERT_NE(module, nullptr);
    run = module->Execute("k", Grid(1, 1), Params(out).bytes, memory, nullptr);
    EXPECT_NE(run.status, ExecStatus::kOk) << broken;
    EXPECT_NE(run.message.find("line 4"), std::string::npos) << run.message;
  }
}

TEST(Load, UnknownOpcodesAreRefusedWithOpcodeKernelAndLine) {
  for (const char* opcode :
       {"tex.cube.v4.f32.f32", "frobnicate.u32", "add.q32", "cp.async.bulk.shared::cluster.global",
        "ld.global.v3.f32", "wgmma.fence"}) {
    std::string error = ErrorOf(std::string(kHeader) + ".visible .entry broken()\n{\n" + opcode +
                                " %r1, %r2;\nret;\n}\n");
    EXPECT_NE(error.find(opcode), std::string::npos) << error;
    EXPECT_NE(error.find("kernel broken"), std::string::npos) << error;
    EXPECT_NE(error.find("line 6"), std::string::npos) << error;
  }
}

TEST(Load, TextThatIsNotPtxIsRefused) {
  EXPECT_NE(ErrorOf(""), "");
  EXPECT_NE(ErrorOf("int main() {}"), "");
  EXPECT_NE(ErrorOf(std::string(kHeader) + ".entry k( { ret; }"), "");
  EXPECT_NE(ErrorOf(std::string(kHeader) + ".entry k() { add.u32 "), "");
  EXPECT_NE(ErrorOf(std::string(kHeader) + ".global .b8 x[99999999999999999999];"), "");
  std::string error =
      ErrorOf(std::string(kHeader) + ".extern .func mystery();\n.entry k() { call mystery; ret; }");
  EXPECT_NE(error.find("mystery"), std::string::npos) << error;
}

TEST(Load, WrongOperandsAreReportedByExecute) {
  TestMemory memory;
  for (const char* body :
       {"add.u32 %r0, %r1;", "add.u32 %r0, %r1, %p0;", "bra nowhere;", "ld.global.u32 %r0, %r1;",
        "setp.lt.u32 %r0, %r1, %r1;", "mov.u32 %r0, missing;", "st.global.v2.u32 [%d0], %r0;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r0}, {%r0}, {%r0};",
        "ld.param.u64 %d0, [nope+8];", "@%r0 ret;", "mov.b64 {%r0, %r1, %r1}, %d0;"}) {
    std::string error;
    std::unique_ptr<Module> module = Module::Load(
        std::string(kHeader) +
            ".entry k(.param .u32 nope) { .reg .b32 %r<2>; .reg .b64 %d<2>; .reg .pred %p<2>;\n" +
            body + "\nret; }",
        &error);
    if (module == nullptr) continue;
    ExecResult result = module->Execute("k", Grid(1, 32), std::vector<uint8_t>(4), memory, nullptr);
    EXPECT_EQ(result.status, ExecStatus::kUnsupported) << body;
    EXPECT_NE(result.message.find("line 5"), std::string::npos) << result.message;
  }
}

TEST(Load, LineTablesAndPragmasAreSkipped) {
  TestMemory memory;
  std::unique_ptr<Module> module = MustLoad(
      std::string(kHeader) +
      ".file 1 \"a b.cu\"\n.visible .entry k()\n{\n.loc 1 5 3\n.pragma \"nounroll\";\n.pragma "
      "\"used_bytes_mask 15\";\n"
      ".loc 1 7 1, function_name $L__info, inlined_at 1 4 2\nret;\n}\n"
      ".section .debug_str\n{\n$L__info:\n.b8 97,98\n}\n.section .debug_abbrev { .b8 1 }\n");
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->Execute("k", Grid(1, 32), {}, memory, nullptr).status, ExecStatus::kOk);
}

TEST(Load, TextWithPartsMissingOrChangedNeverCrashes) {
  std::string text = ReadText(std::string(ATP_PTX_DIR) + "/kernels.ptx");
  std::mt19937 random(11);
  TestMemory memory;
  int loaded = 0;
  for (int round = 0; round < 400; ++round) {
    std::string broken = text.substr(0, round % 2 ? text.size() : random() % text.size());
    int changes = static_cast<int>(random() % 8);
    for (int k = 0; k < changes && !broken.empty(); ++k) {
      size_t at = random() % broken.size();
      switch (random() % 4) {
        case 0:
          broken[at] = static_cast<char>(random());
          break;
        case 1:
          broken.erase(at, random() % 30);
          break;
        case 2:
          broken.insert(at, std::string(1, ";,{}[]()@!%.0x9"[random() % 15]));
          break;
        default:
          broken.insert(at, broken.substr(random() % broken.size(), random() % 40));
          break;
      }
    }
    std::string error;
    std::unique_ptr<Module> module = Module::Load(broken, &error);
    if (module == nullptr) {
      EXPECT_NE(error, "");
      continue;
    }
    ++loaded;
    // Whatever has been read is run as well: it may fail, but only by saying so.
    for (const GlobalInfo& global : module->globals()) {
      if (global.bytes < 1 << 20) module->BindGlobal(global.name, memory.Allocate(4096));
    }
    for (size_t k = 0; k < module->kernels().size(); k += 5) {
      const KernelInfo& kernel = module->kernels()[k];
      LaunchConfig config = Grid(2, 64, 256);
      config.max_warp_instructions = 5000;
      std::vector<uint8_t> params(kernel.param_bytes, static_cast<uint8_t>(random()));
      module->Execute(kernel.name, config, params, memory, nullptr);
    }
  }
  EXPECT_GT(loaded, 20) << "the changes are too destructive to test anything";
}

TEST(Load, EveryOpcodeOfTheSurveyIsKnown) {
  std::stringstream list(ReadText(std::string(ATP_TEST_DIR) + "/surveyed_opcodes.txt"));
  std::string opcode;
  int count = 0;
  while (std::getline(list, opcode)) {
    if (opcode.empty() || opcode[0] == '#') continue;
    std::string error;
    EXPECT_NE(Module::Load(std::string(kHeader) + ".entry k() { " + opcode + "; }", &error),
              nullptr)
        << error;
    ++count;
  }
  EXPECT_GT(count, 450);
}

}  // namespace
}  // namespace atp::sim
