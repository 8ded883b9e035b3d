// SPDX-License-Identifier: Apache-2.0
#include "protocol/trace_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>

#include "tests/protocol/sample_trace.h"

namespace atp::protocol {
namespace {

std::string ErrorOf(std::span<const uint8_t> bytes, ReadOptions options = {}) {
  TraceFile file;
  std::string error;
  const bool read = ReadTrace(bytes, options, &file, &error);
  EXPECT_EQ(read, error.empty());
  return error;
}

// What a damaged row is refused with.
std::string ErrorAfter(const std::function<void(TraceFile*)>& damage) {
  TraceFile file = SampleRaw();
  damage(&file);
  return ErrorOf(BytesOf(file));
}

TEST(TraceReader, AnEmptyFileIsRefused) { EXPECT_NE(ErrorOf({}).find("empty"), std::string::npos); }

TEST(TraceReader, TextIsNoTrace) {
  const std::string text = "{\"format\":\"atp-trace\",\"version\":1}";
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  EXPECT_FALSE(LooksLikeTrace(bytes));
  EXPECT_FALSE(ErrorOf(bytes).empty());
}

TEST(TraceReader, EveryTruncationIsRefusedWithTheChunkAndByte) {
  const std::vector<uint8_t> bytes = BytesOf(SampleRaw());
  for (size_t size = 1; size < bytes.size(); size += 7) {
    const std::string error = ErrorOf(std::span(bytes).first(size));
    EXPECT_NE(error.find("chunk 0 at byte 0"), std::string::npos) << size << ": " << error;
  }
}

TEST(TraceReader, ACutOffLastChunkCanBeLeftOut) {
  const std::vector<uint8_t> whole = BytesOf(SampleRaw(20000));
  const std::span<const uint8_t> bytes(whole.data(), whole.size() - 100);
  EXPECT_NE(ErrorOf(bytes).find("ends inside a chunk"), std::string::npos);
  TraceFile file;
  std::string error;
  ASSERT_TRUE(ReadTrace(bytes, {.accept_truncated = true}, &file, &error)) << error;
  EXPECT_TRUE(file.truncated);
  EXPECT_GT(file.launches.size(), 8000u);
  EXPECT_LT(file.launches.size(), 20000u);
}

TEST(TraceReader, WhatIsNotThereIsNamed) {
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->touches[3].allocation = 77; }).find("allocation 77"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->touches[3].offset = 2 << 20; }).find("beyond"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->touches[3].bytes = ~0ull; }).find("beyond"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->touches[3].access = 0; }).find("neither"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->frees[0].id = 99; }).find("99"), std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->allocations[1].id = 1; }).find("twice"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->launches[5].seconds = -1; }).find("time"),
            std::string::npos);
  EXPECT_NE(ErrorAfter([](TraceFile* f) { f->header.h2d_bytes_per_s = 0.0 / 0.0; }).find("rate"),
            std::string::npos);
}

TEST(TraceReader, ATensorThatIsNotThereIsRefused) {
  TraceFile file = SampleTensors();
  file.uses[4] = 10;
  EXPECT_NE(ErrorOf(BytesOf(file)).find("tensor"), std::string::npos);
}

// Any bytes give an answer: an error, or a trace whose every index holds.
void ExpectSound(std::span<const uint8_t> bytes) {
  TraceFile f;
  std::string error;
  if (!ReadTrace(bytes, {.accept_truncated = true}, &f, &error)) {
    EXPECT_FALSE(error.empty());
    return;
  }
  for (const LaunchRow& l : f.launches) {
    ASSERT_LT(l.name, f.strings.size());
    ASSERT_LE(l.first_touch + l.touches, f.touches.size());
  }
  for (const StepRow& s : f.steps) ASSERT_LE(s.first_use + s.reads + s.writes, f.uses.size());
  for (uint32_t use : f.uses) ASSERT_LT(use, f.tensors.size());
}

TEST(TraceReader, ChangedBytesNeverBreakIt) {
  std::mt19937 random(1);
  for (const TraceFile& sample : {SampleRaw(), SampleTensors()}) {
    const std::vector<uint8_t> good = BytesOf(sample);
    for (int round = 0; round < 3000; ++round) {
      std::vector<uint8_t> bad = good;
      const int changes = 1 + int(random() % 8);
      for (int i = 0; i < changes; ++i) bad[random() % bad.size()] = uint8_t(random());
      // Also lengths and offsets as a whole.
      if (round % 3 == 0) {
        const size_t at = random() % (bad.size() - 4) / 4 * 4;
        const uint32_t extreme[] = {0, 1, 0x7fffffff, 0xffffffff, 0xfffffff0};
        std::memcpy(&bad[at], &extreme[random() % 5], 4);
      }
      ExpectSound(bad);
    }
  }
}

TEST(TraceReader, RandomBytesNeverBreakIt) {
  std::mt19937 random(2);
  for (int round = 0; round < 2000; ++round) {
    std::vector<uint8_t> bytes(random() % 400);
    for (uint8_t& b : bytes) b = uint8_t(random());
    if (bytes.size() > 12) std::memcpy(&bytes[8], "ATPT", 4);
    ExpectSound(bytes);
  }
}

}  // namespace
}  // namespace atp::protocol
