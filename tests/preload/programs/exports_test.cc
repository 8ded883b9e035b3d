// SPDX-License-Identifier: Apache-2.0
// Memory that a known library allocates in order to export it is plain from the start; whose is
// not known is told what to do.
#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

const std::string kFolder = ATP_PROGRAM_FOLDER;
// What the simulated driver says of plain and of managed memory.
constexpr const char* kPlain = "CUDA_SUCCESS";
constexpr const char* kManaged = "CUDA_ERROR_INVALID_VALUE";

Finished With(const std::string& library, Environment environment, const char* times = "0") {
  environment["LD_LIBRARY_PATH"] = ATP_SIM_FOLDER;
  environment.insert({"LD_PRELOAD", Preload({ATP_SHIM_FILE})});
  environment.insert({"ATP_SIM_GPU", "tiny"});
  const Finished run =
      RunChild({kFolder + "/exports", kFolder + "/" + library, times}, environment);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return run;
}

std::string Answers(const char* own, const char* theirs, const char* after) {
  return std::string("own export: ") + own +
         "\ntheir allocation: CUDA_SUCCESS\ntheir export: " + theirs +
         "\nown export after it: " + after +
         "\nfree: CUDA_SUCCESS\nfree: CUDA_SUCCESS\nfree: CUDA_SUCCESS\n";
}

TEST(Exports, OfAKnownLibraryWork) {
  EXPECT_EQ(With("libnccl-like.so", {}).out, Answers(kManaged, kPlain, kPlain));
}

// The direct caller is the runtime then, for everybody.
TEST(Exports, OfAKnownLibraryThatAsksTheRuntimeForMemoryWorkAndThoseOfOthersAreRefused) {
  if (access(ATP_SIM_FOLDER "/libcudart.so.13", R_OK) != 0) GTEST_SKIP() << "no simulated runtime";
  const Environment both = {
      {"ATP_EXPORTERS", "off"},
      {"LD_PRELOAD", Preload({ATP_SHIM_FILE, kFolder + "/libnccl-by-runtime.so"})}};
  EXPECT_EQ(With("libnccl-by-runtime.so", both).out, Answers(kManaged, kPlain, kManaged));
  EXPECT_EQ(With("libsharing-by-runtime.so", both).out, Answers(kManaged, kManaged, kManaged));
}

TEST(Exports, OfALibraryThatTheUserNamesWork) {
  EXPECT_EQ(With("libsharing.so", {{"ATP_NATIVE", "libsharing"}}).out,
            Answers(kManaged, kPlain, kPlain));
  EXPECT_EQ(With("libsharing.so", {{"ATP_NATIVE", "exports"}}).out,
            Answers(kPlain, kManaged, kPlain));
}

TEST(Exports, OfOthersAreRefusedByTheDriverAndTheLogNamesCallerAndRemedy) {
  const Finished run = With("libsharing.so", {{"ATP_EXPORTERS", "off"}});
  EXPECT_EQ(run.out, Answers(kManaged, kManaged, kManaged));
  EXPECT_NE(run.err.find("libsharing.so+0x"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("ATP_NATIVE"), std::string::npos) << run.err;
}

TEST(Exports, WhoWasRefusedIsRememberedInTheProcessAndInTheNextOnes) {
  char folder[] = "/tmp/atp-exports-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/deeper/exporters";
  const Environment remembers = {{"ATP_EXPORTERS", file}};
  const std::string first = With("libsharing.so", remembers).out;
  const std::string second = With("libsharing.so", remembers).out;
  // As long as there is room: half of the budget stays for what must be able to move.
  const std::string small =
      With("libsharing.so", {{"ATP_EXPORTERS", file}, {"ATP_BUDGET", "6MiB"}}).out;
  unlink(file.c_str());
  rmdir((std::string(folder) + "/deeper").c_str());
  rmdir(folder);
  EXPECT_EQ(first, Answers(kManaged, kManaged, kPlain));
  EXPECT_EQ(second, Answers(kPlain, kPlain, kPlain));
  EXPECT_EQ(small, Answers(kManaged, kManaged, kManaged));
}

// What must be plain must fit the card; the error says how much is asked and held, and by whom.
TEST(Exports, ThatDoNotFitTheCardEndWithAnErrorThatNamesSizesAndCallSites) {
  const Finished run = With("libnccl-like.so", {{"ATP_SIM_MEMORY", "33554432"}}, "20");
  EXPECT_NE(run.out.find("no more: CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos) << run.out;
  for (const char* part : {"out of plain memory", "4.0 MiB asked by libnccl-like.so+0x",
                           " by libnccl-like.so+0x", "(exporter)", "ATP_BUDGET"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " in " << run.err;
  }
}

}  // namespace
}  // namespace atp::preload
