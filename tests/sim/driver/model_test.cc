// SPDX-License-Identifier: Apache-2.0
// ATP_SIM_MODEL=repeats: a repeated launch takes its time, touches its pages, computes nothing, and
// all of that is said and counted.
#include <nlohmann/json.hpp>

#include "sim/host_symbols.h"
#include "tests/sim/driver/driver_test_support.h"

namespace atp::sim {
namespace {

constexpr int kCount = 1 << 20;
constexpr int kLaunches = 4;

// Adds 1 to managed memory that is twice as large as the card, several times; writes what became of
// it and how long it took.
void Sweep(const std::string& path) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction increment = nullptr;
  ASSERT_CUDA(cuInit(0));
  ASSERT_CUDA(cuCtxCreate(&context, nullptr, 0, 0));
  ASSERT_CUDA(cuModuleLoad(&module, ATP_TEST_PTX));
  ASSERT_CUDA(cuModuleGetFunction(&increment, module, "Increment"));
  std::vector<CUdeviceptr> parts(16);
  for (CUdeviceptr& part : parts) {
    ASSERT_CUDA(cuMemAllocManaged(&part, kCount * sizeof(int), CU_MEM_ATTACH_GLOBAL));
    ASSERT_CUDA(cuMemsetD32(part, 5, kCount));
  }
  int count = kCount;
  for (int i = 0; i < kLaunches; ++i) {
    for (CUdeviceptr& part : parts) {
      void* arguments[] = {&part, &count};
      ASSERT_CUDA(
          cuLaunchKernel(increment, kCount / 256, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
    }
  }
  ASSERT_CUDA(cuCtxSynchronize());
  const uint64_t now = atpSimNow();
  int last = 0;
  ASSERT_CUDA(cuMemcpyDtoH(&last, parts[0] + 4 * (kCount - 1), sizeof last));
  FILE* file = fopen(path.c_str(), "w");
  fprintf(file, "%d %llu", last, static_cast<unsigned long long>(now));
  fclose(file);
}

struct Outcome {
  int value = 0;
  unsigned long long time = 0;
  nlohmann::json stats;
};

void SweepWith(const std::string& model) {
  RunWith({{"ATP_SIM_MODEL", model},
           {"ATP_SIM_MEMORY", "32MiB"},
           {"ATP_SIM_STATS", TemporaryFile(model + ".stats")}},
          [&] { Sweep(TemporaryFile(model)); });
}

// In the process that RunWith starts nothing has been written yet: read after all sweeps.
Outcome OutcomeWith(const std::string& model) {
  const std::string path = TemporaryFile(model), stats = TemporaryFile(model + ".stats");
  Outcome outcome;
  EXPECT_EQ(sscanf(ReadText(path).c_str(), "%d %llu", &outcome.value, &outcome.time), 2);
  outcome.stats = nlohmann::json::parse(ReadText(stats));
  remove(path.c_str());
  remove(stats.c_str());
  return outcome;
}

TEST(Model, RepeatsTakeTheSameTimeToTheDigitAndComputeNothing) {
  SweepWith("off");
  SweepWith("repeats");
  const Outcome executed = OutcomeWith("off"), modelled = OutcomeWith("repeats");
  EXPECT_EQ(executed.value, 5 + kLaunches);
  EXPECT_EQ(modelled.value, 5 + 1);
  EXPECT_EQ(executed.time, modelled.time);
  EXPECT_EQ(executed.stats["faults"], modelled.stats["faults"]);
  EXPECT_EQ(executed.stats["bytes"], modelled.stats["bytes"]);
  EXPECT_GT(executed.stats["evictions"], 0);
}

TEST(Model, ModelledAndRecalledLaunchesAreCounted) {
  SweepWith("off");
  SweepWith("repeats");
  const Outcome executed = OutcomeWith("off"), modelled = OutcomeWith("repeats");
  EXPECT_EQ(executed.stats["modelled_launches"], 0);
  EXPECT_EQ(executed.stats["recalled_launches"], 16 * (kLaunches - 1));
  EXPECT_EQ(modelled.stats["modelled_launches"], 16 * (kLaunches - 1));
  EXPECT_EQ(modelled.stats["modelled_kernels"]["Increment"], 16 * (kLaunches - 1));
  EXPECT_EQ(modelled.stats["recalled_launches"], 0);
}

TEST(Model, ItIsSaidOnce) {
  RunWith({{"ATP_SIM_MODEL", "repeats"}}, [] {
    testing::internal::CaptureStderr();
    Sweep(TemporaryFile("unused"));
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("compute NOTHING"), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    remove(TemporaryFile("unused").c_str());
  });
}

}  // namespace
}  // namespace atp::sim
