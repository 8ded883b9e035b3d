// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

class Module : public DriverTest {};

TEST_F(Module, VariablesHaveAddressesAndFirstValues) {
  CUdeviceptr counter = 0, managed = 0;
  size_t bytes = 0;
  ASSERT_CUDA(cuModuleGetGlobal(&counter, &bytes, module_, "counter"));
  EXPECT_EQ(bytes, sizeof(int));
  EXPECT_EQ(ReadInts(counter, 1)[0], 5);
  ASSERT_CUDA(cuModuleGetGlobal(&managed, &bytes, module_, "shared_with_host"));
  EXPECT_EQ(*reinterpret_cast<int*>(managed), 7);
  const CUdeviceptr out = Alloc(12);
  ASSERT_CUDA(cuLaunchKernel(Function("UseVariables"), 1, 1, 1, 1, 1, 1, 0, nullptr,
                             std::vector<void*>{const_cast<CUdeviceptr*>(&out)}.data(), nullptr));
  EXPECT_EQ(ReadInts(out, 3), (std::vector<int>{5, 6, 7}));
  EXPECT_EQ(ReadInts(counter, 1)[0], 6);
  EXPECT_EQ(*reinterpret_cast<int*>(managed), 8);
}

TEST_F(Module, UnknownNamesAreNotFound) {
  CUfunction function = nullptr;
  CUdeviceptr address = 0;
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module_, "NoSuchKernel"));
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND,
                cuModuleGetGlobal(&address, nullptr, module_, "no_such_variable"));
}

TEST_F(Module, LoadsUncompressedContainers) {
  CUmodule module = nullptr;
  ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PLAIN_FATBIN));
  unsigned count = 0;
  ASSERT_CUDA(cuModuleGetFunctionCount(&count, module));
  EXPECT_GE(count, 9u);
  EXPECT_CUDA(cuModuleUnload(module));
}

TEST_F(Module, LoadsAContainerBehindNvccsWrapper) {
  const std::string content = ReadText(ATP_TEST_PLAIN_FATBIN);
  struct {
    unsigned magic = 0x466243b1, version = 1;
    const void* data;
    const void* unused = nullptr;
  } wrapper;
  wrapper.data = content.data();
  CUmodule module = nullptr;
  ASSERT_CUDA(cuModuleLoadFatBinary(&module, &wrapper));
  EXPECT_CUDA(cuModuleUnload(module));
}

TEST_F(Module, CompressedPtxIsRefusedWithTheFlagsToRebuild) {
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, ATP_TEST_COMPRESSED_FATBIN));
  const std::string message = testing::internal::GetCapturedStderr();
  EXPECT_NE(message.find("-no-compress -gencode arch=compute_80,code=compute_80"),
            std::string::npos)
      << message;
}

TEST_F(Module, MachineCodeIsRefused) {
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  EXPECT_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU, cuModuleLoad(&module, ATP_TEST_CUBIN));
  EXPECT_NE(testing::internal::GetCapturedStderr().find("machine code"), std::string::npos);
}

TEST_F(Module, DamagedContainersAreRefused) {
  std::string content = ReadText(ATP_TEST_PLAIN_FATBIN);
  const std::string path = TemporaryFile("damaged.fatbin");
  for (const size_t bytes : {size_t{3}, size_t{12}, size_t{40}, content.size() / 2}) {
    FILE* file = fopen(path.c_str(), "wb");
    fwrite(content.data(), 1, bytes, file);
    fclose(file);
    CUmodule module = nullptr;
    testing::internal::CaptureStderr();
    EXPECT_NE(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS) << bytes;
    EXPECT_NE(testing::internal::GetCapturedStderr(), "");
  }
  remove(path.c_str());
}

TEST_F(Module, ErrorsInPtxComeBackInTheLog) {
  char log[512] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  testing::internal::CaptureStderr();
  const char* ptx =
      ".version 9.0\n.target sm_80\n.address_size 64\n.visible .entry k() { nonsense.u32 %r1; ret; "
      "}\n";
  EXPECT_RESULT(CUDA_ERROR_INVALID_PTX, cuModuleLoadDataEx(&module, ptx, 2, options, values));
  EXPECT_NE(std::string(log).find("line"), std::string::npos) << log;
  testing::internal::GetCapturedStderr();
}

TEST_F(Module, FilesThatAreNotThereAreNotFound) {
  CUmodule module = nullptr;
  EXPECT_RESULT(CUDA_ERROR_FILE_NOT_FOUND, cuModuleLoad(&module, "/no/such/file.ptx"));
}

TEST_F(Module, ALibraryServesEveryContextFromOneHandle) {
  const std::string ptx = ReadText(ATP_TEST_PTX);
  CUlibrary library = nullptr;
  ASSERT_CUDA(cuLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  unsigned count = 0;
  ASSERT_CUDA(cuLibraryGetKernelCount(&count, library));
  std::vector<CUkernel> kernels(count);
  ASSERT_CUDA(cuLibraryEnumerateKernels(kernels.data(), count, library));
  for (const CUkernel kernel : kernels) {
    const char* name = nullptr;
    EXPECT_CUDA(cuKernelGetName(&name, kernel));
  }
  CUdeviceptr first = 0, second = 0;
  size_t bytes = 0;
  ASSERT_CUDA(cuLibraryGetGlobal(&first, &bytes, library, "counter"));
  CUcontext other = nullptr;
  ASSERT_CUDA(cuCtxCreate(&other, nullptr, 0, device_));
  ASSERT_CUDA(cuLibraryGetGlobal(&second, &bytes, library, "counter"));
  EXPECT_NE(first, second);
  EXPECT_CUDA(cuCtxDestroy(other));
  EXPECT_RESULT(CUDA_ERROR_NOT_FOUND, cuLibraryGetManaged(&first, &bytes, library, "counter"));
  ASSERT_CUDA(cuLibraryGetManaged(&first, &bytes, library, "shared_with_host"));
  EXPECT_EQ(*reinterpret_cast<int*>(first), 7);
  EXPECT_CUDA(cuLibraryUnload(library));
}

}  // namespace
}  // namespace atp::sim
