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

Finished With(const std::string& library, Environment environment) {
  environment["LD_LIBRARY_PATH"] = ATP_SIM_FOLDER;
  environment["LD_PRELOAD"] = Preload({ATP_SHIM_FILE});
  environment["ATP_SIM_GPU"] = "tiny";
  const Finished run = RunChild({kFolder + "/exports", kFolder + "/" + library}, environment);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return run;
}

std::string Answers(const char* own, const char* theirs) {
  return std::string("own export: ") + own +
         "\ntheir allocation: CUDA_SUCCESS\ntheir export: " + theirs +
         "\nown export after it: " + own +
         "\nfree: CUDA_SUCCESS\nfree: CUDA_SUCCESS\nfree: CUDA_SUCCESS\n";
}

TEST(Exports, OfAKnownLibraryWork) {
  EXPECT_EQ(With("libnccl-like.so", {}).out, Answers(kManaged, kPlain));
}

TEST(Exports, OfALibraryThatTheUserNamesWork) {
  EXPECT_EQ(With("libsharing.so", {{"ATP_NATIVE", "libsharing"}}).out, Answers(kManaged, kPlain));
  EXPECT_EQ(With("libsharing.so", {{"ATP_NATIVE", "exports"}}).out, Answers(kPlain, kManaged));
}

TEST(Exports, OfOthersAreRefusedByTheDriverAndTheLogNamesCallerAndRemedy) {
  const Finished run = With("libsharing.so", {});
  EXPECT_EQ(run.out, Answers(kManaged, kManaged));
  EXPECT_NE(run.err.find("libsharing.so+0x"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("ATP_NATIVE"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace atp::preload
