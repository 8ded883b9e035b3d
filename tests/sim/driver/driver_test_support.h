// SPDX-License-Identifier: Apache-2.0
// What the driver's tests share: a context on device 0 with the test kernels loaded, and tests
// under other environment variables. The driver reads its variables once per process, so those
// tests run in a process of their own.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace atp::sim {

// Compares with the error's name in the message.
testing::AssertionResult IsResult(CUresult got, CUresult wanted);
#define EXPECT_CUDA(expression) EXPECT_TRUE(atp::sim::IsResult((expression), CUDA_SUCCESS))
#define ASSERT_CUDA(expression) ASSERT_TRUE(atp::sim::IsResult((expression), CUDA_SUCCESS))
#define EXPECT_RESULT(wanted, expression) EXPECT_TRUE(atp::sim::IsResult((expression), (wanted)))

std::string ReadText(const std::string& path);
std::string TemporaryFile(const std::string& name);

using Environment = std::vector<std::pair<std::string, std::string>>;
// Runs `body` in a fresh process with these variables; the test fails when it fails there. Must be
// the first thing in a test that touches the driver.
void RunWith(const Environment& environment, const std::function<void()>& body);

class DriverTest : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  CUfunction Function(const char* name);
  // Launches with one thread per element in blocks of 128.
  template <class... Arguments>
  CUresult Launch(const char* name, int threads, CUstream stream, Arguments... arguments) {
    void* pointers[] = {&arguments...};
    const auto blocks = static_cast<unsigned>((threads + 127) / 128);
    return cuLaunchKernel(Function(name), blocks, 1, 1, 128, 1, 1, 0, stream, pointers, nullptr);
  }
  CUdeviceptr Alloc(size_t bytes);
  CUdeviceptr AllocManaged(size_t bytes);
  std::vector<int> ReadInts(CUdeviceptr address, size_t count);

  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
};

}  // namespace atp::sim
