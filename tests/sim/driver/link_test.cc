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

}  // namespace
}  // namespace atp::sim
