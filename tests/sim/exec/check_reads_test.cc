// SPDX-License-Identifier: Apache-2.0
// Reads of memory that nobody has written (LaunchConfig::check_reads).
#include "tests/sim/exec/support.h"

namespace atp::sim {
namespace {

// Memory whose written words are known.
class WatchedMemory : public TestMemory {
 public:
  bool Find(uint64_t address, Region* region) const override {
    if (!TestMemory::Find(address, region)) return false;
    auto found = written_.find(region->begin);
    region->initialised = found == written_.end() ? nullptr : found->second.data();
    return true;
  }
  uint64_t Watch(uint64_t bytes) {
    const uint64_t address = Allocate(bytes);
    written_[address].resize(bytes / 256 + 1);
    return address;
  }

 private:
  mutable std::map<uint64_t, std::vector<uint64_t>> written_;
};

// Every thread adds 1 to its word of `to`, after reading the word `shift` further in `from`.
constexpr char kPtx[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry copy(.param .u64 from, .param .u64 to)\n{\n"
    ".reg .b64 %rd<8>; .reg .b32 %r<8>;\n"
    "ld.param.u64 %rd1, [from]; ld.param.u64 %rd2, [to];\n"
    "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\n"
    "mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %rd3, %r4, 4;\n"
    "add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;\n"
    "ld.global.u32 %r5, [%rd4]; add.u32 %r5, %r5, 1; st.global.u32 [%rd5], %r5;\nret;\n}\n";

class CheckReads : public testing::Test {
 protected:
  ExecResult Copy(uint64_t from, uint64_t to, uint32_t blocks) {
    LaunchConfig config = Grid(blocks, 128);
    config.check_reads = true;
    return module_->Execute("copy", config, Params(from, to).bytes, memory_, nullptr);
  }
  WatchedMemory memory_;
  std::unique_ptr<Module> module_ = MustLoad(kPtx);
};

TEST_F(CheckReads, WhatAKernelHasWrittenMayBeReadAndNothingElse) {
  const uint64_t source = memory_.Put(std::vector<uint32_t>(4096, 1));  // not watched
  const uint64_t a = memory_.Watch(16384), b = memory_.Watch(16384);
  EXPECT_EQ(Copy(source, a, 8).uninitialised_reads, 0u);
  EXPECT_EQ(Copy(a, b, 8).uninitialised_reads, 0u);
  const ExecResult beyond = Copy(a, b, 9);
  EXPECT_EQ(beyond.status, ExecStatus::kOk);
  EXPECT_EQ(beyond.uninitialised_reads, 4u) << "one access of each warp of the ninth block";
  EXPECT_NE(beyond.first_uninitialised.find("kernel copy"), std::string::npos);
  EXPECT_NE(beyond.first_uninitialised.find("block (8,0,0)"), std::string::npos)
      << beyond.first_uninitialised;
}

TEST_F(CheckReads, AReadOfAPageThatIsPartlyWrittenIsFound) {
  const uint64_t source = memory_.Put(std::vector<uint32_t>(4096, 1));
  const uint64_t a = memory_.Watch(16384), b = memory_.Watch(16384);
  Copy(source, a, 1);
  EXPECT_EQ(Copy(a + 4, b, 1).uninitialised_reads, 1u) << "the last warp reads one word too many";
}

TEST_F(CheckReads, ChangesNeitherResultsNorTouches) {
  const uint64_t from = memory_.Put(std::vector<uint32_t>(4096, 1)), to = memory_.Watch(16384);
  const ExecResult watched = Copy(from, to, 8);
  const ExecResult plain =
      module_->Execute("copy", Grid(8, 128), Params(from, to).bytes, memory_, nullptr);
  ASSERT_EQ(watched.waves.size(), plain.waves.size());
  ASSERT_EQ(watched.waves[0].pages.size(), plain.waves[0].pages.size());
  for (size_t i = 0; i < plain.waves[0].pages.size(); ++i) {
    EXPECT_EQ(watched.waves[0].pages[i].page, plain.waves[0].pages[i].page);
    EXPECT_EQ(watched.waves[0].pages[i].flags, plain.waves[0].pages[i].flags);
  }
  EXPECT_EQ(plain.uninitialised_reads, 0u);
}

}  // namespace
}  // namespace atp::sim
