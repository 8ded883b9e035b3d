// SPDX-License-Identifier: Apache-2.0
#include "protocol/share_report.h"

#include <gtest/gtest.h>

#include "daemon_generated.h"

namespace atp::protocol {
namespace {

ShareReport Sample() {
  return {"card",
          uint64_t{8} << 30,
          5,
          6,
          7,
          8,
          9,
          2.5,
          -3,
          true,
          "python train.py",
          {{uint64_t{3} << 30, 17, 0}, {5, 18, 0}}};
}

TEST(ShareReport, ArrivesAsItWasSent) {
  ShareReport read;
  std::string error;
  ASSERT_TRUE(Read(Write(Sample()), &read, &error)) << error;
  EXPECT_EQ(read, Sample());
}

TEST(ShareReport, CutShortOrChangedIsRefusedOrStillSensible) {
  const std::vector<uint8_t> bytes = Write(Sample());
  ShareReport read;
  std::string error;
  for (size_t length = 0; length + 8 < bytes.size(); ++length) {  // at its end it may be padded
    EXPECT_FALSE(Read({bytes.data(), length}, &read, &error)) << length;
  }
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::vector<uint8_t> changed = bytes;
    changed[at] ^= 0xff;
    if (!Read(changed, &read, &error)) continue;
    EXPECT_GE(read.weight, kLeastWeight);
    EXPECT_LE(read.weight, kMostWeight);
    EXPECT_GT(read.card_bytes, 0u);
  }
}

// One version older: it says nothing of other processes. One newer: it says more.
TEST(ShareReport, OfAnOlderOrNewerShimIsTaken) {
  for (const bool newer : {false, true}) {
    flatbuffers::FlatBufferBuilder to;
    const auto card = to.CreateString("card"), command = to.CreateString("train");
    const auto start = to.StartTable();
    to.AddOffset(wire::ShareReport::VT_CARD, card);
    to.AddElement<uint64_t>(wire::ShareReport::VT_CARD_BYTES, 100, 0);
    to.AddElement<uint64_t>(wire::ShareReport::VT_FOOTPRINT, 60, 0);
    to.AddElement<double>(wire::ShareReport::VT_WEIGHT, 2, 0);
    to.AddOffset(wire::ShareReport::VT_COMMAND, command);
    if (newer) to.AddElement<uint64_t>(wire::ShareReport::VT_PROCESSES + 2, 11, 0);
    to.Finish(flatbuffers::Offset<wire::ShareReport>(to.EndTable(start)));
    ShareReport read;
    std::string error;
    ASSERT_TRUE(Read({to.GetBufferPointer(), to.GetSize()}, &read, &error)) << error;
    EXPECT_EQ(read.footprint, 60u);
    EXPECT_EQ(read.command, "train");
    EXPECT_TRUE(read.processes.empty());
  }
}

TEST(ShareReport, NumbersThatMakeNoSenseAreRefused) {
  ShareReport read;
  std::string error;
  ShareReport bad = Sample();
  bad.weight = 0;
  EXPECT_FALSE(Read(Write(bad), &read, &error));
  bad = Sample();
  bad.priority = 1000;
  EXPECT_FALSE(Read(Write(bad), &read, &error));
  bad = Sample();
  bad.card.clear();
  EXPECT_FALSE(Read(Write(bad), &read, &error));
}

}  // namespace
}  // namespace atp::protocol
