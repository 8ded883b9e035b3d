// SPDX-License-Identifier: Apache-2.0
#include "protocol/trace_writer.h"

#include <gtest/gtest.h>

#include "protocol/trace_reader.h"
#include "tests/protocol/sample_trace.h"

namespace atp::protocol {
namespace {

TraceFile ReadBack(const std::vector<uint8_t>& bytes) {
  TraceFile file;
  std::string error;
  EXPECT_TRUE(ReadTrace(bytes, {}, &file, &error)) << error;
  return file;
}

TEST(TraceWriter, AWholeRunComesBackAsItWas) {
  const TraceFile file = SampleRaw();
  const TraceFile back = ReadBack(BytesOf(file));
  EXPECT_EQ(back.header.name, "sample");
  EXPECT_EQ(back.header.other, file.header.other);
  EXPECT_EQ(back.header.duplex_h2d_bytes_per_s, 12e9);
  ASSERT_EQ(back.allocations.size(), 8u);
  ASSERT_EQ(back.frees.size(), 1u);
  EXPECT_EQ(back.strings[back.frees[0].extra], "{\"x\":1}");
  ASSERT_EQ(back.launches.size(), file.launches.size());
  for (size_t i = 0; i < file.launches.size(); ++i) {
    EXPECT_EQ(back.launches[i].seconds, file.launches[i].seconds);
    EXPECT_EQ(back.launches[i].signature, file.launches[i].signature);
    EXPECT_EQ(back.strings[back.launches[i].name], file.strings[file.launches[i].name]);
    EXPECT_EQ(back.launches[i].extra == kNoString, file.launches[i].extra == kNoString);
  }
  ASSERT_EQ(back.touches.size(), file.touches.size());
  EXPECT_EQ(back.touches[3].access, kOverwrites);
  EXPECT_EQ(back.strings[back.marks[0].text], "iteration");
}

TEST(TraceWriter, APeriodOfTensorsComesBackAsItWas) {
  const TraceFile file = SampleTensors();
  const TraceFile back = ReadBack(BytesOf(file));
  EXPECT_TRUE(back.HasTensorBody());
  ASSERT_EQ(back.tensors.size(), 10u);
  EXPECT_EQ(back.strings[back.tensors[3].id], "t3");
  EXPECT_FALSE(back.tensors[3].global);
  EXPECT_EQ(back.uses, file.uses);
  EXPECT_EQ(back.steps[7].workspace_bytes, 17u);
}

TEST(TraceWriter, ALongRunIsWrittenInChunksWhileItGrows) {
  size_t chunks = 0;
  TraceWriter writer({}, [&](const uint8_t*, size_t) { return ++chunks > 0; });
  const uint32_t name = writer.String("k");
  for (int i = 0; i < 100000; ++i) writer.Launch({0, 1e-6, name, 0, 0, 0, 0, kNoString}, {});
  EXPECT_GE(chunks, 10u);
}

TEST(TraceWriter, AnEmptyTraceIsAHeader) {
  const TraceFile back = ReadBack(BytesOf(TraceFile()));
  EXPECT_TRUE(back.launches.empty());
  EXPECT_FALSE(back.HasTensorBody());
}

TEST(TraceWriter, ASinkThatRefusesIsReported) {
  TraceWriter writer({}, [](const uint8_t*, size_t) { return false; });
  writer.Flush();
  EXPECT_TRUE(writer.failed());
}

TEST(TraceWriter, TheSameStringHasTheSameNumber) {
  TraceWriter writer({}, [](const uint8_t*, size_t) { return true; });
  const uint32_t a = writer.String("a"), b = writer.String("b");
  EXPECT_NE(a, b);
  EXPECT_EQ(writer.String("a"), a);
}

}  // namespace
}  // namespace atp::protocol
