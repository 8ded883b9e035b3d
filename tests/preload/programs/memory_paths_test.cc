// SPDX-License-Identifier: Apache-2.0
// Memory used in every way, right and wrong: the program cannot tell that its memory is managed.
#include <gtest/gtest.h>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

struct Setting {
  const char* name;
  Environment environment;
};

std::string Answers(const std::string& which, const Setting* setting) {
  return RunOnTinyCard({ATP_PROGRAM_FOLDER "/memory_paths", which}, setting != nullptr,
                       setting != nullptr ? setting->environment : Environment{})
      .out;
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
