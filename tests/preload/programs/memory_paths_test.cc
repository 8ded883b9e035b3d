// SPDX-License-Identifier: Apache-2.0
// Memory used in every way, right and wrong: the program cannot tell that its memory is managed.
#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

struct Setting {
  const char* name;
  Environment environment;
};

std::string Answers(const std::string& which, const Setting* setting) {
  Environment environment = {{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                             {"LD_PRELOAD", Preload({})},
                             {"ATP_SIM_GPU", "tiny"},
                             {"ATP_LOG", "error"}};
  if (setting != nullptr) {
    environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
    for (const auto& [name, value] : setting->environment) environment[name] = value;
  }
  const Finished run = RunChild({ATP_PROGRAM_FOLDER "/memory_paths", which}, environment);
  EXPECT_EQ(run.exit_code, 0) << run.err << " signal " << run.signal;
  return run.out;
}

class MemoryPathsTest : public testing::TestWithParam<std::tuple<const char*, Setting>> {};

TEST_P(MemoryPathsTest, AnswersAreThoseOfPlainMemory) {
  const auto& [which, setting] = GetParam();
  const std::string native = Answers(which, nullptr);
  EXPECT_GT(native.size(), 50u);
  EXPECT_EQ(Answers(which, &setting), native);
}

TEST(PlainMemory, OfOursIsFreedInStreamOrderAsTheDriverPromises) {
  const Setting fits{"fits", {}};
  EXPECT_EQ(Answers("plain", &fits),
            "allocation before cuInit: CUDA_ERROR_NOT_INITIALIZED\nset in order: CUDA_SUCCESS\n"
            "free in order: CUDA_SUCCESS\nand once more: CUDA_ERROR_INVALID_VALUE\n"
            "wait: CUDA_SUCCESS\n");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, MemoryPathsTest,
    testing::Combine(testing::Values("frees", "ranges", "contents", "order", "capture", "numbers",
                                     "bare", "contexts"),
                     testing::Values(Setting{"fits", {}},
                                     Setting{"managed", {{"ATP_POLICY", "managed"}}},
                                     Setting{"over", {{"ATP_BUDGET", "4MiB"}}},
                                     Setting{"off", {{"ATP_POLICY", "off"}}})),
    [](const auto& test) {
      return std::string(std::get<0>(test.param)) + "_" + std::get<1>(test.param).name;
    });

}  // namespace
}  // namespace atp::preload
