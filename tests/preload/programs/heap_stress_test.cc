// SPDX-License-Identifier: Apache-2.0
// Random allocations and frees over eight streams and threads (heap_stress.cc): no two live blocks
// overlap, no memory is used again before its last use is over, and the accounts end at zero.
// ATP_STRESS_OPERATIONS=1000000 for the long form.
#include <gtest/gtest.h>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

constexpr char kGood[] =
    "0 words spoiled, 0 overlaps, 0 blocks live\nused 0, reserved 0\nused 0, reserved 0\n"
    "free memory is as before\n";

class HeapStress : public testing::TestWithParam<std::pair<const char*, Environment>> {};

TEST_P(HeapStress, NoBlockIsGivenOutTwiceOrTooEarlyAndTheAccountsClose) {
  const char* wanted = getenv("ATP_STRESS_OPERATIONS");
  Environment environment = GetParam().second;
  const bool with_shim = environment.erase("native") == 0;
  environment["ATP_SIM_MEMORY"] = "256MiB";
  const Finished run =
      RunOnTinyCard({ATP_PROGRAM_FOLDER "/heap_stress", ATP_PROGRAM_FOLDER "/heap_stress.ptx",
                     wanted != nullptr ? wanted : "6000"},
                    with_shim, environment);
  EXPECT_EQ(run.out, kGood) << run.err;
}

INSTANTIATE_TEST_SUITE_P(
    Settings, HeapStress,
    testing::Values(std::pair("driver", Environment{{"native", ""}}),
                    std::pair("fits", Environment{}),
                    std::pair("over", Environment{{"ATP_BUDGET", "24MiB"}}),
                    std::pair("no_small_plain", Environment{{"ATP_BUDGET", "1MiB"}}),
                    std::pair("heap_off",
                              Environment{{"ATP_BUDGET", "24MiB"}, {"ATP_DISABLE", "heap"}}),
                    std::pair("pools_off", Environment{{"ATP_DISABLE", "pools"}})),
    [](const auto& test) { return std::string(test.param.first); });

}  // namespace
}  // namespace atp::preload
