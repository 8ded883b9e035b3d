// SPDX-License-Identifier: Apache-2.0
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

using Lines = std::vector<nlohmann::json>;

// Runs `body` with a context and the test kernels under ATP_SIM_TRACE and returns what was written.
Lines Traced(const std::function<void(CUcontext, CUmodule)>& body) {
  const std::string path = TemporaryFile("trace.jsonl");
  RunWith({{"ATP_SIM_TRACE", path}}, [&] {
    CUcontext context = nullptr;
    CUmodule module = nullptr;
    ASSERT_CUDA(cuInit(0));
    ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
    ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
    body(context, module);
    ASSERT_CUDA(cuCtxSynchronize());
  });
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(nlohmann::json::parse(line));
  remove(path.c_str());
  return lines;
}

Lines With(const Lines& lines, const char* key) {
  Lines found;
  for (const auto& line : lines) {
    if (line.contains(key)) found.push_back(line);
  }
  return found;
}

TEST(Trace, BeginsWithAHeaderThatDescribesTheMachine) {
  const Lines lines = Traced([](CUcontext, CUmodule) {});
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines[0]["format"], "atp-trace");
  EXPECT_EQ(lines[0]["version"], 1);
  EXPECT_EQ(lines[0]["device_bytes"], 256u << 20);
  EXPECT_GT(lines[0]["h2d_bytes_per_s"], 1e9);
  EXPECT_LE(lines[0]["duplex_h2d_bytes_per_s"], lines[0]["h2d_bytes_per_s"]);
}

TEST(Trace, SaysWhatEachLaunchTouchedAndHow) {
  const Lines lines = Traced([](CUcontext, CUmodule module) {
    CUfunction add = nullptr;
    ASSERT_CUDA(cuModuleGetFunction(&add, module, "Add"));
    constexpr size_t kBytes = 1 << 20;
    CUdeviceptr a = 0, b = 0, c = 0;
    ASSERT_CUDA(cuMemAllocManaged(&a, kBytes, CU_MEM_ATTACH_GLOBAL));
    ASSERT_CUDA(cuMemAlloc(&b, kBytes));
    ASSERT_CUDA(cuMemAlloc(&c, kBytes));
    int n = (128 << 10) / 4;  // the first 128 KiB
    void* arguments[] = {&a, &b, &c, &n};
    ASSERT_CUDA(cuLaunchKernel(add, static_cast<unsigned>(n / 128), 1, 1, 128, 1, 1, 0, nullptr,
                               arguments, nullptr));
    ASSERT_CUDA(cuMemFree(b));
  });
  const Lines allocations = With(lines, "alloc"), launches = With(lines, "launch"),
              frees = With(lines, "free");
  Lines mine;
  for (const auto& allocation : allocations) {
    if (allocation["bytes"] == 1 << 20) mine.push_back(allocation);
  }
  ASSERT_EQ(mine.size(), 3u);
  EXPECT_EQ(mine[0]["kind"], "managed");
  EXPECT_EQ(mine[1]["kind"], "native");
  ASSERT_EQ(launches.size(), 1u);
  EXPECT_EQ(launches[0]["name"], "Add");
  EXPECT_GT(launches[0]["us"], 0.0);
  const nlohmann::json wanted = {{mine[0]["alloc"], 0, 128 << 10, "r"},
                                 {mine[1]["alloc"], 0, 128 << 10, "r"},
                                 {mine[2]["alloc"], 0, 128 << 10, "o"}};
  EXPECT_EQ(launches[0]["touches"], wanted);
  ASSERT_FALSE(frees.empty());
  EXPECT_EQ(frees[0]["free"], mine[1]["alloc"]);
  EXPECT_EQ(frees[0]["at"], 1);
}

TEST(Trace, CopiesAndSetsAreLaunchesOfTheirOwnNames) {
  const Lines lines = Traced([](CUcontext, CUmodule) {
    CUdeviceptr a = 0, b = 0;
    std::vector<char> host(4096);
    ASSERT_CUDA(cuMemAlloc(&a, 4096));
    ASSERT_CUDA(cuMemAlloc(&b, 4096));
    ASSERT_CUDA(cuMemcpyHtoD(a, host.data(), 4096));
    ASSERT_CUDA(cuMemcpyDtoD(b, a, 2048));
    ASSERT_CUDA(cuMemcpyDtoH(host.data(), b, 100));
    ASSERT_CUDA(cuMemsetD8(b + 16, 1, 32));
  });
  std::vector<std::string> names;
  for (const auto& launch : With(lines, "launch")) names.push_back(launch["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"memcpy_h2d", "memcpy_d2d", "memcpy_d2h", "memset"}));
  const auto set = With(lines, "launch")[3]["touches"][0];
  EXPECT_EQ(set[1], 16);
  EXPECT_EQ(set[2], 32);
  EXPECT_EQ(set[3], "o");
}

TEST(Trace, EqualLaunchesHaveEqualSignatures) {
  const Lines lines = Traced([](CUcontext, CUmodule module) {
    CUfunction fill = nullptr;
    ASSERT_CUDA(cuModuleGetFunction(&fill, module, "Fill"));
    CUdeviceptr a = 0;
    ASSERT_CUDA(cuMemAlloc(&a, 4096));
    int value = 1, n = 512;
    void* arguments[] = {&a, &value, &n};
    for (const unsigned blocks : {4u, 4u, 8u})
      ASSERT_CUDA(cuLaunchKernel(fill, blocks, 1, 1, 128, 1, 1, 0, nullptr, arguments, nullptr));
  });
  const Lines launches = With(lines, "launch");
  ASSERT_EQ(launches.size(), 3u);
  EXPECT_EQ(launches[0]["signature"], launches[1]["signature"]);
  EXPECT_NE(launches[0]["signature"], launches[2]["signature"]);
}

TEST(Trace, AFileThatCannotBeWrittenIsSaid) {
  RunWith({{"ATP_SIM_TRACE", "/no/such/folder/trace"}}, [] {
    testing::internal::CaptureStderr();
    EXPECT_RESULT(CUDA_ERROR_INVALID_VALUE, cuInit(0));
    EXPECT_NE(testing::internal::GetCapturedStderr().find("/no/such/folder/trace"),
              std::string::npos);
  });
}

}  // namespace
}  // namespace atp::sim
