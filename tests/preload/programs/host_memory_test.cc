// SPDX-License-Identifier: Apache-2.0
// Host memory that would not hold what is evicted kills a context. So memory is refused before
// that, and what was granted works to the end: for one process, and for all of a machine together.
#include <gtest/gtest.h>

#include <memory>

#include "tests/preload/running.h"

namespace atp::preload {
namespace {

Environment OnCardOf64MiB(const Environment& more) {
  Environment environment = more;
  environment["ATP_SIM_MEMORY"] = "64MiB";
  return OnTinyCard(true, environment);
}

std::vector<std::string> Program(const char* way, int blocks) {
  return {ATP_PROGRAM_FOLDER "/host_memory", way, std::to_string(blocks), "8"};
}

class HostMemoryTest : public testing::TestWithParam<const char*> {};

// 128 MiB wanted, 64 on the card: half the card less than all on the host.
TEST_P(HostMemoryTest, IsRefusedBeforeAnEvictionFindsNone) {
  const Environment host = {{"ATP_SIM_HOST_MEMORY", "96MiB"}, {"ATP_HOST_BUDGET", "100%"}};
  const Finished run = RunChild(Program(GetParam(), 16), OnCardOf64MiB(host));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.out, "holds 96 MiB, CUDA_ERROR_OUT_OF_MEMORY\ncontext CUDA_SUCCESS\n");
  for (const char* part : {"8.0 MiB asked", "96.0 MiB already promised", "96.0 MiB, as ATP_HOST_",
                           "by host_memory (", "Remedy"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " in " << run.err;
  }
}

TEST_P(HostMemoryTest, WithAPromiseThatTheHostCannotKeepTheContextIsLost) {
  const Environment host = {{"ATP_SIM_HOST_MEMORY", "96MiB"}, {"ATP_HOST_BUDGET", "1GiB"}};
  const Finished run = RunChild(Program(GetParam(), 16), OnCardOf64MiB(host));
  EXPECT_NE(run.exit_code, 0) << "the test above would pass without the shim's doing";
}

TEST_P(HostMemoryTest, WhatFitsTheCardNeedsNone) {
  const Environment host = {{"ATP_SIM_HOST_MEMORY", "4MiB"}};
  const Finished run = RunChild(Program(GetParam(), 6), OnCardOf64MiB(host));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  EXPECT_EQ(run.out, "holds 48 MiB, CUDA_SUCCESS\ncontext CUDA_SUCCESS\n");
}

INSTANTIATE_TEST_SUITE_P(Ways, HostMemoryTest, testing::Values("plain", "async", "range"),
                         [](const auto& way) { return way.param; });

class HostLedgerOfAMachine : public testing::Test {
 protected:
  HostLedgerOfAMachine() { unlink(ledger_.c_str()); }
  ~HostLedgerOfAMachine() override { unlink(ledger_.c_str()); }
  Environment Sharing(const char* budget, const Environment& more = {}) {
    Environment environment = more;
    environment["ATP_LEDGER"] = ledger_;
    environment["ATP_HOST_BUDGET"] = budget;
    environment["ATP_LOG"] = "warn";
    return OnCardOf64MiB(environment);
  }
  std::string ledger_ = testing::TempDir() + "machine." + std::to_string(getpid()) + ".ledger";
};

TEST_F(HostLedgerOfAMachine, EightProcessesShareOneLimit) {
  constexpr int kLimit = 400;
  const char* ways[] = {"plain", "async", "range"};
  std::vector<std::unique_ptr<Running>> running;
  for (int i = 0; i < 8; ++i) {
    running.push_back(std::make_unique<Running>(Program(ways[i % 3], 12), Sharing("400MiB")));
  }
  int held = 0, refused = 0;
  for (const auto& process : running) {
    ASSERT_TRUE(process->Says("MiB, CUDA_")) << process->said();
    held += process->HeldMiB();
    refused += process->HeldMiB() < 12 * 8;
  }
  EXPECT_LE(held, kLimit);
  EXPECT_GE(held, kLimit - 8 * 8) << "each may lack less than a block";
  EXPECT_GE(refused, 1) << "the sum of what is wanted exceeds the limit";
  for (const auto& process : running) {
    EXPECT_EQ(process->Finish(), 0) << process->said();
    EXPECT_NE(process->said().find("context CUDA_SUCCESS"), std::string::npos);
  }
}

TEST_F(HostLedgerOfAMachine, WhatAKilledProcessHeldIsThereForWhoWaits) {
  Running first(Program("plain", 12), Sharing("128MiB"));
  ASSERT_TRUE(first.Says("holds 96 MiB, CUDA_SUCCESS")) << first.said();
  Running second(Program("plain", 12), Sharing("128MiB", {{"ATP_WAIT", "10m"}}));
  ASSERT_TRUE(second.Says("waiting for it")) << second.said();
  first.Kill();
  EXPECT_TRUE(second.Says("holds 96 MiB, CUDA_SUCCESS")) << second.said();
  EXPECT_EQ(second.Finish(), 0) << second.said();
}

TEST_F(HostLedgerOfAMachine, NobodyIsWaitedForWhereNobodyHoldsAny) {
  const Finished run = RunChild(Program("plain", 12), Sharing("80MiB", {{"ATP_WAIT", "10m"}}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.out, "holds 80 MiB, CUDA_ERROR_OUT_OF_MEMORY\ncontext CUDA_SUCCESS\n");
}

}  // namespace
}  // namespace atp::preload
