// SPDX-License-Identifier: Apache-2.0
#include "protocol/run_record_reader.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <random>

#include "tests/protocol/sample_record.h"

namespace atp::protocol {
namespace {

TEST(RunRecordReader, WhatWasWrittenIsRead) {
  RunRecord run;
  ASSERT_EQ(ReadRunRecord(SampleRecord(), &run), "");
  EXPECT_EQ(run.header.pid, 4711);
  EXPECT_STREQ(run.header.command, "./train --size 3");
  ASSERT_EQ(run.devices.size(), 1u);
  const DeviceRun& device = run.devices[0];
  EXPECT_EQ(device.rows.size(), 6u);
  EXPECT_EQ(device.rows[5].in_bytes, 160 * kSampleMiB);
  ASSERT_EQ(device.notes.size(), 1u);
  EXPECT_EQ(device.notes[0].row, 3u);
  ASSERT_TRUE(device.measured);
  EXPECT_EQ(device.measured->NameOf(device.measured->launches[3]), "update");
  EXPECT_EQ(device.measured->moves.size(), 3u);
}

TEST(RunRecordReader, OfAFullRingTheNewestRowsAreReadInOrder) {
  std::vector<char> bytes = SampleRecord();
  RunRecordDevice device;
  std::memcpy(&device, bytes.data() + RunRecordDeviceAt(0), sizeof device);
  device.rows = 1000;
  for (uint64_t i = 0; i < device.rows; ++i) device.row[i % kRunRecordRows].at_ns = i;
  std::memcpy(bytes.data() + RunRecordDeviceAt(0), &device, sizeof device);
  RunRecord run;
  ASSERT_EQ(ReadRunRecord(bytes, &run), "");
  const DeviceRun& read = run.devices[0];
  EXPECT_EQ(read.rows.front().at_ns, read.first_row);
  EXPECT_EQ(read.rows.back().at_ns, 999u);
  EXPECT_LT(read.rows.size(), kRunRecordRows);  // the oldest may be half overwritten
}

TEST(RunRecordReader, AnotherVersionIsNamed) {
  std::vector<char> bytes = SampleRecord();
  const uint32_t version = kRunRecordVersion + 1;
  std::memcpy(bytes.data() + offsetof(RunRecordHeader, version), &version, sizeof version);
  RunRecord run;
  EXPECT_NE(ReadRunRecord(bytes, &run).find("version 2"), std::string::npos);
  EXPECT_EQ(ReadRunRecord(std::vector<char>(100, 'x'), &run), "not the record of a run");
  EXPECT_EQ(ReadRunRecord({}, &run), "not the record of a run");
}

TEST(RunRecordReader, ACutFileIsAnErrorOrAShorterRun) {
  const std::vector<char> bytes = SampleRecord();
  const size_t snapshot = RunRecordDeviceAt(0) + RunRecordSnapshotAt(0);
  for (size_t size = 0; size < snapshot + 2000; size += 97) {
    RunRecord run;
    const std::string wrong = ReadRunRecord(std::span(bytes).first(size), &run);
    if (!wrong.empty()) continue;
    for (const DeviceRun& device : run.devices) {
      EXPECT_GE(size, RunRecordDeviceAt(0) + sizeof(RunRecordDevice));
      EXPECT_FALSE(device.measured && device.measured->launches.size() != 4);
    }
  }
}

TEST(RunRecordReader, HostileIndicesAndTimesAreRefused) {
  const auto refused = [](auto change) {
    SampleSnapshot s = SampleMeasured();
    change(&s);
    RunRecord run;
    return !ReadRunRecord(SampleRecord(s), &run).empty();
  };
  EXPECT_FALSE(refused([](SampleSnapshot*) {}));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->launches[0].first_use = 0xFFFFFFFF; }));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->launches[0].uses = 0xFFFFFFFF; }));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->launches[0].name = 1000; }));
  EXPECT_TRUE(refused(
      [](SampleSnapshot* s) { s->launches[0].end = std::numeric_limits<double>::quiet_NaN(); }));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->uses[0] = 4000; }));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->names.back() = 'x'; }));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->head.h2d = -1; }));
  EXPECT_TRUE(refused([](SampleSnapshot* s) { s->tensors[0].bytes = UINT64_MAX; }));
}

TEST(RunRecordReader, ChangedBytesNeverLeadBeyondTheRecord) {
  const std::vector<char> whole = SampleRecord();
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::vector<char> bytes = whole;
    for (int k = 0; k < 8; ++k) {
      const size_t parts[] = {0, RunRecordDeviceAt(0),
                              RunRecordDeviceAt(0) + RunRecordSnapshotAt(0)};
      bytes[parts[random() % 3] + random() % 800] = static_cast<char>(random());
    }
    RunRecord run;
    ReadRunRecord(bytes, &run);  // the sanitizers of the asan build judge
  }
}

}  // namespace
}  // namespace atp::protocol
