// SPDX-License-Identifier: Apache-2.0
// How fast is the interpreter? Tiled SGEMM (16x16, n = 512) and vector add on one core, for each
// build of the handlers.
//
// Prints "variant sgemm_gflops vadd_melements ns_per_warp_instruction"; --json prints the same as
// one object. Best of several runs. Times are CPU time of the one thread that runs, so that other
// work on the machine disturbs little.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "sim/exec/exec.h"
#include "sim/exec/variant.h"

namespace {

using atp::sim::ExecResult;
using atp::sim::ExecStatus;
using atp::sim::LaunchConfig;
using atp::sim::Module;

// One flat allocation at a fixed address.
class Memory : public atp::sim::MemoryMap {
 public:
  explicit Memory(size_t bytes) : data_(bytes) {}
  bool Find(uint64_t address, atp::sim::Region* region) const override {
    if (address < kBase || address >= kBase + data_.size()) return false;
    region->begin = kBase;
    region->end = kBase + data_.size();
    region->host_delta = static_cast<int64_t>(reinterpret_cast<uintptr_t>(data_.data()) - kBase);
    region->writable = true;
    return true;
  }
  static constexpr uint64_t kBase = 0x7f0000000000;

 private:
  std::vector<uint8_t> data_;
};

// As nvcc would write them, shortened.
constexpr char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry vadd(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<11>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r2, [n];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra $end;
  cvta.to.global.u64 %rd4, %rd1; mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd4, %rd5;
  cvta.to.global.u64 %rd7, %rd2; add.s64 %rd8, %rd7, %rd5;
  ld.global.f32 %f1, [%rd8]; ld.global.f32 %f2, [%rd6]; add.f32 %f3, %f2, %f1;
  cvta.to.global.u64 %rd9, %rd3; add.s64 %rd10, %rd9, %rd5;
  st.global.f32 [%rd10], %f3;
$end:
  ret;
}
)";

std::string SgemmPtx() {
  std::string ptx = R"(
.visible .entry sgemm(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n) {
  .reg .pred %p<2>; .reg .f32 %f<40>; .reg .b32 %r<24>; .reg .b64 %rd<20>;
  .shared .align 4 .b8 As[1024]; .shared .align 4 .b8 Bs[1024];
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [c]; ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %ctaid.y;
  shl.b32 %r6, %r5, 4; add.s32 %r7, %r6, %r3; shl.b32 %r8, %r4, 4; add.s32 %r9, %r8, %r2;
  mad.lo.s32 %r10, %r7, %r1, %r2; mul.wide.s32 %rd4, %r10, 4; add.s64 %rd5, %rd1, %rd4;
  mad.lo.s32 %r11, %r3, %r1, %r9; mul.wide.s32 %rd6, %r11, 4; add.s64 %rd7, %rd2, %rd6;
  shl.b32 %r12, %r1, 4; mul.wide.s32 %rd8, %r12, 4;
  mov.u32 %r13, As; shl.b32 %r14, %r3, 6; add.s32 %r15, %r13, %r14; shl.b32 %r16, %r2, 2; add.s32 %r17, %r15, %r16;
  mov.u32 %r18, Bs; add.s32 %r19, %r18, %r16; add.s32 %r20, %r19, %r14;
  mov.f32 %f1, 0f00000000; mov.u32 %r21, 0;
$loop:
  ld.global.f32 %f2, [%rd5]; st.shared.f32 [%r17], %f2; ld.global.f32 %f3, [%rd7]; st.shared.f32 [%r20], %f3;
  bar.sync 0;
)";
  for (int k = 0; k < 16; ++k) {
    char line[160];
    std::snprintf(line, sizeof(line),
                  "ld.shared.f32 %%f4, [%%r19+%d]; ld.shared.f32 %%f5, [%%r15+%d]; fma.rn.f32 "
                  "%%f1, %%f5, %%f4, %%f1;\n",
                  64 * k, 4 * k);
    ptx += line;
  }
  return ptx + R"(
  bar.sync 0;
  add.s64 %rd5, %rd5, 64; add.s64 %rd7, %rd7, %rd8; add.s32 %r21, %r21, 16;
  setp.lt.s32 %p1, %r21, %r1;
  @%p1 bra $loop;
  mad.lo.s32 %r22, %r7, %r1, %r9; mul.wide.s32 %rd9, %r22, 4; add.s64 %rd10, %rd3, %rd9;
  st.global.f32 [%rd10], %f1;
  ret;
}
)";
}

double CpuSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Timing {
  double seconds = 1e9;
  uint64_t warp_instructions = 0;
};

Timing Time(Module* module, const char* kernel, const LaunchConfig& config, uint32_t n,
            uint64_t bytes, Memory* memory, int runs) {
  std::vector<uint8_t> params(28);
  for (int k = 0; k < 3; ++k) {
    uint64_t address = Memory::kBase + static_cast<uint64_t>(k) * bytes;
    std::memcpy(params.data() + 8 * k, &address, 8);
  }
  std::memcpy(params.data() + 24, &n, 4);
  Timing best;
  for (int run = 0; run < runs; ++run) {
    double start = CpuSeconds();
    ExecResult result = module->Execute(kernel, config, params, *memory, nullptr);
    double took = CpuSeconds() - start;
    if (result.status != ExecStatus::kOk) {
      std::fprintf(stderr, "%s\n", result.message.c_str());
      std::exit(1);
    }
    best.seconds = std::min(best.seconds, took);
    best.warp_instructions = result.warp_instructions;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false, smoke = false;
  for (int k = 1; k < argc; ++k) {
    if (std::strcmp(argv[k], "--json") == 0) {
      json = true;
    } else if (std::strcmp(argv[k], "--smoke") == 0) {
      smoke = true;
    } else {
      bool help = std::strcmp(argv[k], "--help") == 0;
      std::fprintf(help ? stdout : stderr, "usage: sim_ops [--json] [--smoke]\n");
      return help ? 0 : 2;
    }
  }
  atp::sim::SetExecutionThreads(1);
  const uint32_t n = smoke ? 64 : 512, elements = smoke ? 1 << 14 : 1 << 18;
  const int runs = smoke ? 1 : 7;
  Memory memory(size_t{3} * std::max<size_t>(size_t{n} * n * 4, size_t{elements} * 4));
  if (json) std::printf("{");
  if (!json)
    std::printf("%-8s %14s %16s %24s\n", "variant", "sgemm_gflops", "vadd_melements",
                "ns_per_warp_instruction");
  const char* separator = "";
  for (const auto* variant : atp::sim::exec::UsableVariants()) {
    atp::sim::exec::SelectVariant(variant->name);
    std::string error;
    std::unique_ptr<Module> module = Module::Load(std::string(kPtx) + SgemmPtx(), &error);
    if (module == nullptr) {
      std::fprintf(stderr, "%s\n", error.c_str());
      return 1;
    }
    LaunchConfig config;
    config.blocks_per_wave = 864;
    config.grid[0] = config.grid[1] = n / 16;
    config.block[0] = config.block[1] = 16;
    Timing sgemm = Time(module.get(), "sgemm", config, n, uint64_t{n} * n * 4, &memory, runs);
    LaunchConfig flat;
    flat.blocks_per_wave = 864;
    flat.grid[0] = elements / 256;
    flat.block[0] = 256;
    Timing vadd = Time(module.get(), "vadd", flat, elements, uint64_t{elements} * 4, &memory, runs);
    double gflops = 2.0 * n * n * n / sgemm.seconds * 1e-9,
           melements = elements / vadd.seconds * 1e-6;
    double ns = sgemm.seconds * 1e9 / static_cast<double>(sgemm.warp_instructions);
    if (json) {
      std::printf(
          "%s\"%s\":{\"sgemm_gflops\":%.3f,\"vadd_melements\":%.1f,\"ns_per_warp_instruction\":%."
          "2f}",
          separator, variant->name, gflops, melements, ns);
      separator = ",";
    } else {
      std::printf("%-8s %14.3f %16.1f %24.2f\n", variant->name, gflops, melements, ns);
    }
  }
  if (json) std::printf("}\n");
  return 0;
}
