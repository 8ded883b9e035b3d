// SPDX-License-Identifier: Apache-2.0
// Faults that users of other libraries of our kind have reported, by the thread that reports them.
#include <gtest/gtest.h>

#include "tests/preload/simulated.h"

namespace atp::preload {
namespace {

Finished Case(const std::string& which, bool with, const Environment& more = {}) {
  return RunOnTinyCard({ATP_PROGRAM, which}, with, more);
}

void ExpectAsWithoutUs(const std::string& which, const Environment& more = {}) {
  const std::string native = Case(which, false, more).out;
  EXPECT_GT(native.size(), 20u);
  for (const char* budget : {"100%", "6MiB"}) {
    Environment environment = more;
    environment["ATP_BUDGET"] = budget;
    EXPECT_EQ(Case(which, true, environment).out, native) << budget;
  }
}

// Project-HAMi/HAMi 1181, Project-HAMi/HAMi-core 306: after double frees, frees of what is unknown,
// and calls that the driver refuses, the counters are wrong for good.
TEST(Issues, AccountsCloseWhateverIsFreedTwiceOrRefused) {
  EXPECT_EQ(Case("accounts", false).out, "the numbers close: 1\n");
  EXPECT_EQ(Case("accounts", true).out, "the numbers close: 1\n");
  for (const char* function :
       {"cuMemAlloc_v2", "cuMemAllocManaged", "cuMemAllocPitch_v2", "cuMemAllocAsync",
        "cuMemFree_v2", "cuMemFreeAsync", "cuMemAddressReserve", "cuMemCreate", "cuMemMap",
        "cuMemUnmap", "cuMemAddressFree", "cuCtxSynchronize", "cuEventRecord", "cuEventCreate",
        "cuMemPrefetchAsync_v2", "cuStreamSynchronize"}) {
    for (const char* which : {":1=2", ":2=1", ":3=2", ":7=1"}) {
      for (const char* budget : {"100%", "6MiB"}) {
        const Environment more = {{"ATP_SIM_FAULT", std::string(function) + which},
                                  {"ATP_BUDGET", budget},
                                  {"ATP_LOG", "off"}};
        EXPECT_EQ(Case("accounts", true, more).out, "the numbers close: 1\n")
            << function << which << ' ' << budget;
      }
    }
  }
}

// Project-HAMi/HAMi 1219, 1438, 1461: workers of several devices crash.
TEST(Issues, AWorkerForEachOfFourDevicesWorks) {
  ExpectAsWithoutUs("workers", {{"ATP_SIM_DEVICES", "4"}});
}

// Project-HAMi/HAMi-core 225: wrong limits where CUDA_VISIBLE_DEVICES does not begin with 0.
TEST(Issues, DevicesAreCountedAsTheProgramSeesThem) {
  ExpectAsWithoutUs("visible", {{"ATP_SIM_DEVICES", "4"}, {"CUDA_VISIBLE_DEVICES", "3,1"}});
}

// Project-HAMi/HAMi-core 61: a crash where many threads use a device for the first time at once.
TEST(Issues, ManyThreadsMayStartAtOnce) { ExpectAsWithoutUs("together"); }

// kvcache-ai/Mooncake 2511, openucx/ucx 11922: handles for other devices.
TEST(Issues, WhetherThereAreHandlesForOtherDevicesIsTheDriversAnswer) {
  ExpectAsWithoutUs("handles");
}

// tensorflow/tensorflow 51673, jax-ml/jax 17426: frameworks that take nearly all memory first.
TEST(Issues, NearlyAllMemoryMayBeTakenAtOnceAndLittleOfItUsed) {
  ExpectAsWithoutUs("preallocation");
}

// NVIDIA/stdexec 1619, eyalroz/cuda-api-wrappers 749: one name, other arguments since 12.2.
TEST(Issues, ANameGivesTheFunctionOfTheVersionThatWasAskedFor) { ExpectAsWithoutUs("versions"); }

// Nobody's report, but a promise of plain memory that managed memory does not keep: streams neither
// write nor await values there (CUDA driver API, "Stream Memory Operations"). Such memory becomes
// plain at that moment.
TEST(Issues, AStreamThatWritesAndAwaitsValuesWorks) { ExpectAsWithoutUs("values"); }

// Where it cannot become plain the log says why and what to do, and the next run has plain memory
// there.
TEST(Issues, WhereMemoryCannotBecomePlainItIsPlainInTheNextRun) {
  char folder[] = "/tmp/atp-values-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/exporters";
  const Environment remembers = {
      {"ATP_EXPORTERS", file}, {"ATP_LOG", "warn"}, {"ATP_DISABLE", "vmm"}};
  const std::string native = Case("values", false).out;
  const Finished first = Case("values", true, remembers);
  const Finished second = Case("values", true, remembers);
  unlink(file.c_str());
  rmdir(folder);
  EXPECT_NE(native.find("write: CUDA_SUCCESS"), std::string::npos) << native;
  EXPECT_EQ(first.out.substr(0, native.size() / 2), native.substr(0, native.size() / 2));
  EXPECT_NE(first.out, native);
  for (const char* part : {"stream memory operations by issues+0x", "ATP_NATIVE", "from now on"}) {
    EXPECT_NE(first.err.find(part), std::string::npos) << part << " in " << first.err;
  }
  EXPECT_EQ(second.out, native);
  EXPECT_EQ(second.err, "");
}

}  // namespace
}  // namespace atp::preload
