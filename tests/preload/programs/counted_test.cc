// SPDX-License-Identifier: Apache-2.0
// However a program is linked, each of its calls enters the hook: the report's counts are the
// numbers that stand in the program.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

const std::string kPrograms = ATP_PROGRAM_FOLDER;

class CountedTest : public testing::Test {
 protected:
  CountedTest() { EXPECT_NE(mkdtemp(folder_), nullptr); }
  ~CountedTest() override {
    unlink(Report().c_str());
    rmdir(folder_);
  }
  std::string Report() const { return std::string(folder_) + "/report.json"; }

  nlohmann::json Counts(const std::string& program, std::vector<std::string> arguments,
                        Environment more = {}) {
    Environment environment = {{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                               {"LD_PRELOAD", Preload({ATP_SHIM_FILE})},
                               {"ATP_REPORT", Report()},
                               {"ATP_SIM_GPU", "tiny"}};
    environment.merge(more);
    arguments.insert(arguments.begin(), kPrograms + "/" + program);
    const Finished run = RunChild(arguments, environment);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    EXPECT_NE(run.out.find("PASS"), std::string::npos) << run.out << run.err;
    std::ifstream file(Report());
    nlohmann::json report = nlohmann::json::parse(file, nullptr, false);
    EXPECT_FALSE(report.is_discarded()) << "no report";
    return report.is_discarded() ? nlohmann::json::object() : report["hooks"];
  }

  static void ExpectRuntimeCounts(const nlohmann::json& hooks) {
    const std::map<std::string, int> expected = {
        {"cuMemAlloc_v2", 3},       {"cuMemAllocAsync", 1},      {"cuMemFree_v2", 3},
        {"cuMemFreeAsync", 1},      {"cuMemsetD8_v2", 1},        {"cuMemsetD8Async", 1},
        {"cuLaunchKernel", 8},      {"cuMemcpyDtoDAsync_v2", 1}, {"cuEventSynchronize", 1},
        {"cuStreamSynchronize", 1}, {"cuMemcpyDtoH_v2", 1},      {"cuMemcpyHtoD_v2", 1},
        {"cuCtxSynchronize_v2", 1}, {"cuStreamDestroy_v2", 1},   {"cuGetProcAddress_v2", 440}};
    for (const auto& [symbol, calls] : expected) EXPECT_EQ(hooks.value(symbol, 0), calls) << symbol;
  }
  static void ExpectDriverCounts(const nlohmann::json& hooks) {
    const std::map<std::string, int> expected = {
        {"cuMemAlloc_v2", 1},   {"cuMemFree_v2", 1},     {"cuMemsetD32_v2", 1},
        {"cuLaunchKernel", 5},  {"cuLaunchKernelEx", 1}, {"cuLaunchCooperativeKernel", 1},
        {"cuMemcpyDtoH_v2", 2}, {"cuModuleUnload", 1}};
    for (const auto& [symbol, calls] : expected) EXPECT_EQ(hooks.value(symbol, 0), calls) << symbol;
  }
  char folder_[32] = "/tmp/atp-counted-XXXXXX";
};

TEST_F(CountedTest, AProgramWithTheSharedRuntimeIsIntercepted) {
  ExpectRuntimeCounts(Counts("counted_shared", {}));
}

TEST_F(CountedTest, AProgramWithTheRuntimeLinkedInIsIntercepted) {
  ExpectRuntimeCounts(Counts("counted_static", {}));
}

TEST_F(CountedTest, ThePerThreadTwinsAreIntercepted) {
  const nlohmann::json hooks = Counts("counted_per_thread", {});
  EXPECT_EQ(hooks.value("cuLaunchKernel_ptsz", 0), 8);
  EXPECT_EQ(hooks.value("cuMemsetD8_v2_ptds", 0), 1);
  EXPECT_EQ(hooks.value("cuMemcpyDtoH_v2_ptds", 0), 1);
  EXPECT_EQ(hooks.value("cuMemAllocAsync_ptsz", 0), 1);
  EXPECT_EQ(hooks.value("cuLaunchKernel", 0), 0);
}

TEST_F(CountedTest, AProgramLinkedWithTheDriverIsIntercepted) {
  ExpectDriverCounts(Counts("counted_driver", {kPrograms + "/bump.ptx"}));
}

TEST_F(CountedTest, AProgramThatOpensTheDriverIsIntercepted) {
  ExpectDriverCounts(Counts("counted_handle", {kPrograms + "/bump.ptx"}));
}

TEST_F(CountedTest, ResultsAndCountsStayWhenMemoryHasToMove) {
  ExpectRuntimeCounts(Counts("counted_shared", {}, {{"ATP_BUDGET", "4MiB"}, {"ATP_LOG", "error"}}));
  ExpectDriverCounts(Counts("counted_driver", {kPrograms + "/bump.ptx"},
                            {{"ATP_BUDGET", "4MiB"}, {"ATP_LOG", "error"}}));
}

TEST_F(CountedTest, WithPolicyOffNoHookIsCounted) {
  const Finished run =
      RunChild({kPrograms + "/counted_shared"}, {{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                                                 {"LD_PRELOAD", Preload({ATP_SHIM_FILE})},
                                                 {"ATP_POLICY", "off"},
                                                 {"ATP_REPORT", Report()}});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_FALSE(std::ifstream(Report()).good());
}

}  // namespace
}  // namespace atp::preload
