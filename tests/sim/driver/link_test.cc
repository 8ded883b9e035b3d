// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Link : public DriverTest {
 protected:
  CUresult Add(CUlinkState state, const std::string& text) {
    return cuLinkAddData(state, CU_JIT_INPUT_PTX, const_cast<char*>(text.c_str()), text.size() + 1,
                         "part", 0, nullptr, nullptr);
  }
};

const std::string kHeader = ".version 8.0\n.target sm_80\n.address_size 64\n";
const std::string kCaller = kHeader +
                            ".extern .func (.param .b32 r) twice(.param .b32 x);\n"
                            ".visible .entry k(.param .u64 out) {\n"
                            ".reg .b32 %r<3>; .reg .b64 %d; .param .b32 x; .param .b32 r;\n"
                            "ld.param.u64 %d, [out]; mov.u32 %r0, 21; st.param.b32 [x], %r0;\n"
                            "call.uni (r), twice, (x); ld.param.b32 %r1, [r];\n"
                            "st.global.u32 [%d], %r1; ret; }\n";
const std::string kCallee = kHeader +
                            ".visible .func (.param .b32 r) twice(.param .b32 x) {\n"
                            ".reg .b32 %r<2>; ld.param.b32 %r0, [x]; add.u32 %r0, %r0, %r0;\n"
                            "st.param.b32 [r], %r0; ret; }\n";

TEST_F(Link, AFunctionOfOneTextIsCalledFromAnother) {
  for (bool callee_first : {false, true}) {
    CUlinkState state = nullptr;
    ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
    ASSERT_CUDA(Add(state, callee_first ? kCallee : kCaller));
    ASSERT_CUDA(Add(state, callee_first ? kCaller : kCallee));
    void* image = nullptr;
    size_t bytes = 0;
    ASSERT_CUDA(cuLinkComplete(state, &image, &bytes));
    EXPECT_GT(bytes, kCallee.size());
    CUmodule module = nullptr;
    ASSERT_CUDA(cuModuleLoadData(&module, image));
    ASSERT_CUDA(cuLinkDestroy(state));
    CUfunction kernel = nullptr;
    ASSERT_CUDA(cuModuleGetFunction(&kernel, module, "k"));
    CUdeviceptr out = Alloc(4);
    void* arguments[] = {&out};
    ASSERT_CUDA(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr));
    EXPECT_EQ(ReadInts(out, 1)[0], 42);
    EXPECT_CUDA(cuModuleUnload(module));
  }
}

TEST_F(Link, AFileIsAPartToo) {
  CUlinkState state = nullptr;
  void* image = nullptr;
  CUmodule module = nullptr;
  CUfunction add = nullptr;
  ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  ASSERT_CUDA(cuLinkAddFile(state, CU_JIT_INPUT_PTX, ATP_TEST_PTX, 0, nullptr, nullptr));
  EXPECT_RESULT(CUDA_ERROR_FILE_NOT_FOUND,
                cuLinkAddFile(state, CU_JIT_INPUT_PTX, "no such file", 0, nullptr, nullptr));
  ASSERT_CUDA(cuLinkComplete(state, &image, nullptr));
  ASSERT_CUDA(cuModuleLoadData(&module, image));
  EXPECT_CUDA(cuModuleGetFunction(&add, module, "Add"));
  EXPECT_CUDA(cuLinkDestroy(state));
  EXPECT_RESULT(CUDA_ERROR_INVALID_HANDLE, cuLinkDestroy(state));
}

TEST_F(Link, WhatIsMissingIsNamedInTheLog) {
  char log[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState state = nullptr;
  void* image = nullptr;
  ASSERT_CUDA(cuLinkCreate(2, options, values, &state));
  EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuLinkComplete(state, &image, nullptr));
  ASSERT_CUDA(Add(state, kCaller));
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX, cuLinkComplete(state, &image, nullptr));
  EXPECT_NE(strstr(log, "twice"), nullptr) << log;
  EXPECT_CUDA(cuLinkDestroy(state));
}

TEST_F(Link, MachineCodeCannotBeLinked) {
  CUlinkState state = nullptr;
  std::string cubin = ReadText(ATP_TEST_CUBIN);
  ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU,
                cuLinkAddData(state, CU_JIT_INPUT_CUBIN, cubin.data(), cubin.size(), "cubin", 0,
                              nullptr, nullptr));
  EXPECT_CUDA(cuLinkDestroy(state));
}

// Each thread adds to five counters in turn, its grid waits after each, and then each block notes
// what the counter holds at which it began.
const std::string kGridWaits =
    kHeader +
    ".extern .func (.param .b64 h) cudaCGGetIntrinsicHandle(.param .b32 s);\n"
    ".extern .func (.param .b32 e) cudaCGSynchronize(.param .b64 h, .param .b32 f);\n"
    ".visible .entry waits(.param .u64 counters) {\n"
    ".reg .b32 %b, %n, %k, %v, %z; .reg .b64 %a, %c, %h; .reg .pred %p;\n"
    "ld.param.u64 %a, [counters]; mov.u32 %b, %ctaid.x; mov.u32 %n, %nctaid.x;\n"
    "mov.u32 %z, 0; mov.u32 %k, 0;\n"
    "{ .param .b32 s; .param .b64 r; st.param.b32 [s], 1;\n"
    "call.uni (r), cudaCGGetIntrinsicHandle, (s); ld.param.b64 %h, [r]; }\n"
    "again: mad.wide.u32 %c, %b, 4, %a; atom.global.add.u32 %v, [%c], 1;\n"
    "{ .param .b64 h; .param .b32 f; .param .b32 e; st.param.b64 [h], %h; st.param.b32 [f], %z;\n"
    "call.uni (e), cudaCGSynchronize, (h, f); }\n"
    "add.u32 %b, %b, 1; rem.u32 %b, %b, %n; add.u32 %k, %k, 1; setp.lt.u32 %p, %k, 5;\n"
    "@%p bra again;\n"
    "mov.u32 %b, %ctaid.x; mad.wide.u32 %c, %b, 4, %a; ld.volatile.global.u32 %v, [%c];\n"
    "add.u32 %b, %b, %n; mad.wide.u32 %c, %b, 4, %a; st.global.u32 [%c], %v; ret; }\n";

TEST_F(Link, AWholeGridWaitsInTheDeviceRuntimesBarrier) {
  CUlinkState state = nullptr;
  ASSERT_CUDA(cuLinkCreate(0, nullptr, nullptr, &state));
  ASSERT_CUDA(Add(state, kGridWaits));
  char archive[] = "!<arch>";
  EXPECT_CUDA(cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, archive, sizeof archive,
                            "lib64/libcudadevrt.a", 0, nullptr, nullptr));
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU,
                cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, archive, sizeof archive, "libother.a", 0,
                              nullptr, nullptr));
  testing::internal::GetCapturedStderr();
  void* image = nullptr;
  CUmodule module = nullptr;
  CUfunction kernel = nullptr;
  ASSERT_CUDA(cuLinkComplete(state, &image, nullptr));
  ASSERT_CUDA(cuModuleLoadData(&module, image));
  ASSERT_CUDA(cuLinkDestroy(state));
  ASSERT_CUDA(cuModuleGetFunction(&kernel, module, "waits"));
  constexpr unsigned kBlocks = 6, kThreads = 64;
  CUdeviceptr counters = Alloc(2 * kBlocks * 4);
  EXPECT_CUDA(cuMemsetD32(counters, 0, 2 * kBlocks));
  void* arguments[] = {&counters};
  ASSERT_CUDA(
      cuLaunchCooperativeKernel(kernel, kBlocks, 1, 1, kThreads, 1, 1, 0, nullptr, arguments));
  // Behind five barriers each counter has been added to by every thread of five blocks.
  for (const int value : ReadInts(counters, 2 * kBlocks)) EXPECT_EQ(value, 5 * kThreads);
  EXPECT_CUDA(cuModuleUnload(module));
}

}  // namespace
}  // namespace atp::sim
