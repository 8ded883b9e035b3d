// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/driver/driver_test_support.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace atp::sim {

testing::AssertionResult IsResult(CUresult got, CUresult wanted) {
  if (got == wanted) return testing::AssertionSuccess();
  const char *got_name = nullptr, *wanted_name = nullptr;
  cuGetErrorName(got, &got_name);
  cuGetErrorName(wanted, &wanted_name);
  return testing::AssertionFailure() << "got " << (got_name ? got_name : "?") << " (" << got
                                     << "), wanted " << (wanted_name ? wanted_name : "?");
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string TemporaryFile(const std::string& name) {
  // The same in a process that RunWith starts: no process id.
  return std::string(ATP_TEST_FOLDER "/") +
         testing::UnitTest::GetInstance()->current_test_info()->name() + "." + name;
}

namespace {

[[noreturn]] void RunAndExit(const Environment& environment, const std::function<void()>& body) {
  for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
  body();
  // The usual printer is silent in this process.
  const testing::TestResult& result =
      *testing::UnitTest::GetInstance()->current_test_info()->result();
  for (int i = 0; i < result.total_part_count(); ++i) {
    const testing::TestPartResult& part = result.GetTestPartResult(i);
    if (part.failed())
      std::fprintf(stderr, "%s:%d: %s\n", part.file_name(), part.line_number(), part.message());
  }
  std::exit(testing::Test::HasFailure() ? 1 : 0);
}

}  // namespace

void RunWith(const Environment& environment, const std::function<void()>& body) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // runs this binary again
  EXPECT_EXIT(RunAndExit(environment, body), testing::ExitedWithCode(0), "");
}

void DriverTest::SetUp() {
  ASSERT_CUDA(cuInit(0));
  ASSERT_CUDA(cuDeviceGet(&device_, 0));
  ASSERT_CUDA(cuCtxCreate(&context_, nullptr, 0, device_));
  ASSERT_CUDA(cuModuleLoad(&module_, ATP_TEST_PTX));
}

void DriverTest::TearDown() {
  if (!context_) return;
  EXPECT_CUDA(cuCtxDestroy(context_));
}

CUfunction DriverTest::Function(const char* name) {
  CUfunction function = nullptr;
  EXPECT_CUDA(cuModuleGetFunction(&function, module_, name));
  return function;
}

CUdeviceptr DriverTest::Alloc(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_CUDA(cuMemAlloc(&address, bytes));
  return address;
}

CUdeviceptr DriverTest::AllocManaged(size_t bytes) {
  CUdeviceptr address = 0;
  EXPECT_CUDA(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
  return address;
}

std::vector<int> DriverTest::ReadInts(CUdeviceptr address, size_t count) {
  std::vector<int> values(count);
  EXPECT_CUDA(cuMemcpyDtoH(values.data(), address, count * sizeof(int)));
  return values;
}

}  // namespace atp::sim

int main(int argc, char** argv) {
  setenv("ATP_SIM_GPU", "tiny", 0);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
