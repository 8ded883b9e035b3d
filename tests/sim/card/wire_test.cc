// SPDX-License-Identifier: Apache-2.0
#include "sim/card/wire.h"

#include <gtest/gtest.h>

#include "sim/card/remote_machine.h"

namespace atp::sim {
namespace {

TEST(Wire, AKernelArrivesAsItWasSent) {
  KernelWork work;
  work.name = "k";
  work.resident_time = 5;
  work.threads = 6;
  work.sector_bytes = 7;
  work.waves.resize(2);
  work.waves[1].pages = {{9, PageTouch::kRead}, {10, PageTouch::kWrite}};
  work.waves[1].block_ends = {1, 2};
  Writer out;
  PutWork(&out, work);
  Reader in(out.bytes());
  const KernelWork arrived = GetWork(&in);
  EXPECT_EQ(arrived.name, "k");
  EXPECT_EQ(arrived.resident_time, 5);
  EXPECT_EQ(arrived.threads, 6u);
  EXPECT_EQ(arrived.sector_bytes, 7u);
  ASSERT_EQ(arrived.waves.size(), 2u);
  EXPECT_EQ(arrived.waves[1].pages[1].page, 10u);
  EXPECT_EQ(arrived.waves[1].pages[1].flags, PageTouch::kWrite);
  EXPECT_EQ(arrived.waves[1].block_ends, work.waves[1].block_ends);
}

TEST(Wire, WhatIsCutShortReadsAsZeros) {
  const std::string bytes = Writer().PutText("a text").bytes().substr(0, 10);
  Reader in(bytes);
  EXPECT_EQ(in.GetText(), "");
  EXPECT_EQ(Reader("").Get<uint64_t>(), 0u);
}

TEST(CardPlace, IsASocketWithOrWithoutANumberAndAStart) {
  CardPlace place;
  ASSERT_TRUE(ParseCardPlace("/tmp/card,3", "2.5", &place));
  EXPECT_EQ(place.socket, "/tmp/card");
  EXPECT_EQ(place.member, 3);
  EXPECT_EQ(place.start, 2500 * kUs);
  CardPlace any;
  ASSERT_TRUE(ParseCardPlace("/tmp/card", "", &any));
  EXPECT_EQ(any.member, -1);
  EXPECT_FALSE(ParseCardPlace("/tmp/card,x", "", &place));
  EXPECT_FALSE(ParseCardPlace("/tmp/card", "soon", &place));
}

}  // namespace
}  // namespace atp::sim
