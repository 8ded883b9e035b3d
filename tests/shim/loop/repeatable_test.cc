// SPDX-License-Identifier: Apache-2.0
// Which launches of a period are found to be repeatable.
#include "shim/repeatable.h"

#include <gtest/gtest.h>

#include <string>

#include "shim/functions.h"
#include "shim/kernel_images.h"

namespace atp::shim {
namespace {

constexpr uint64_t kCode = 7;

// out[i] = in[i] for i < n; `add` adds to out[0] instead.
constexpr char kKernels[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry copy_all(.param .u64 in, .param .u64 out, .param .u32 n) {
  .reg .b64 %d<8>; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .pred %p<4>;
  ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out]; ld.param.u32 %r0, [n];
  mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.s32 %r4, %r2, %r3, %r1;
  setp.ge.u32 %p0, %r4, %r0; @%p0 bra DONE;
  mul.wide.u32 %d2, %r4, 4; add.u64 %d3, %d0, %d2; add.u64 %d4, %d1, %d2;
  ld.global.f32 %f1, [%d3]; st.global.f32 [%d4], %f1;
DONE:
  ret;
}
.visible .entry add_all(.param .u64 in, .param .u64 out, .param .u32 n) {
  .reg .b64 %d<8>; .reg .f32 %f<4>;
  ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
  ld.global.f32 %f1, [%d0]; red.global.add.f32 [%d1], %f1; ret;
}
)";

class RepeatableTest : public testing::Test {
 protected:
  RepeatableTest() {
    RememberImage(kKernels, kCode);
    for (FunctionInfo* info : {&copy_, &add_}) {
      info->known = true;
      info->code = kCode;
      info->name = info == &copy_ ? "copy_all" : "add_all";
      info->parameters = parameters_;
      AccessOf(info->name);  // as the first launch does
    }
    for (Allocation* a : {&in_, &out_}) {
      a->id = a == &in_ ? 1 : 2;
      a->bytes = a->mapped_bytes = kGranule;
      a->address = a->id << 32;
      live_[a->id] = a;
    }
  }
  struct Place {
    Allocation* allocation;
    uint64_t offset;
  };
  void Launch(const FunctionInfo& info, Place from, Place to, uint32_t n, uint32_t shared = 0) {
    Touch touches[2] = {{from.allocation, from.offset, 0, true, false},
                        {to.allocation, to.offset, 0, false, true}};
    uint64_t pointers[2] = {from.allocation->address + from.offset,
                            to.allocation->address + to.offset};
    void* arguments[3] = {&pointers[0], &pointers[1], &n};
    LaunchView view;
    view.touches = touches;
    view.touch_count = 0;
    for (const Touch& touch : touches) {  // of what is watched
      if (live_.count(touch.allocation->id) > 0) touches[view.touch_count++] = touch;
    }
    view.arguments.info = &info;
    view.arguments.parameters = arguments;
    view.arguments.shape.block[0] = 256;
    view.arguments.shape.shared_bytes = shared;
    view.arguments.shape.grid[0] = (n + 255) / 256;
    recorder_.Record(view);
    ++launches_;
  }
  Repeatable Find() { return FindRepeatable(recorder_.Last(launches_, {}, live_)); }

  static constexpr Parameter parameters_[3] = {{0, 8}, {8, 8}, {16, 4}};
  FunctionInfo copy_, add_;
  Allocation in_, out_;
  std::unordered_map<uint64_t, Allocation*> live_;
  Recorder recorder_;
  uint32_t launches_ = 0;
};

TEST_F(RepeatableTest, WhatIsProvenMayRunAgain) {
  Launch(copy_, {&in_, 0}, {&out_, 4096}, 1000);
  Launch(add_, {&in_, 0}, {&out_, 0}, 1);
  const Repeatable found = Find();
  EXPECT_EQ(found.launches, (std::vector<bool>{true, false}));
  EXPECT_EQ(found.count, 1u);
  EXPECT_EQ(found.written_bytes, 4000u);
  const std::map<std::string, uint64_t> refused = {{"add_all: has red.global.add.f32", 1}};
  EXPECT_EQ(found.refused, refused);
}

TEST_F(RepeatableTest, OneProofServesOtherPointersButNotWhereTheyOverlap) {
  Launch(copy_, {&in_, 0}, {&out_, 0}, 1000);
  Launch(copy_, {&in_, 0}, {&in_, 4000}, 1000);
  Launch(copy_, {&in_, 0}, {&in_, 3996}, 1000);
  Launch(copy_, {&in_, 0}, {&in_, 0}, 1000);
  EXPECT_EQ(Find().launches, (std::vector<bool>{true, true, false, false}));
}

TEST_F(RepeatableTest, WhatReachesBeyondItsAllocationIsLeftAlone) {
  Launch(copy_, {&in_, 0}, {&out_, kGranule - 4000}, 1000);
  Launch(copy_, {&in_, 0}, {&out_, kGranule - 4000}, 1001);
  EXPECT_EQ(Find().launches, (std::vector<bool>{true, false}));
}

TEST_F(RepeatableTest, NoPtxIsNoProof) {
  FunctionInfo other = copy_;
  other.name = "of_machine_code";
  Launch(other, {&in_, 0}, {&out_, 0}, 1000);
  const Repeatable found = Find();
  EXPECT_EQ(found.count, 0u);
  EXPECT_EQ(found.refused.count("of_machine_code: no PTX"), 1u);
}

std::string Named(const char* name, const char* step) {
  std::string text = kKernels;
  for (size_t at; (at = text.find("copy_all")) != std::string::npos;) text.replace(at, 8, name);
  for (size_t at; (at = text.find("add_all")) != std::string::npos;) text.replace(at, 7, "other");
  const std::string scale = "%r4, 4;";
  text.replace(text.find(scale), scale.size(), step);
  return text;
}

TEST_F(RepeatableTest, OfTwoTextsOfOneImageBothMustDoTheSame) {
  FunctionInfo twice = copy_;
  twice.name = "named_alike";
  RememberImage(Named("named_alike", "%r4, 4;").c_str(), kCode);
  AccessOf("named_alike");
  Launch(twice, {&in_, 0}, {&out_, 0}, 64);
  EXPECT_EQ(Find().count, 1u);
  RememberImage(Named("named_alike", "%r4, 8;").c_str(), kCode);
  AccessOf("named_alike");
  EXPECT_EQ(Find().count, 0u);
}

// By its name alone a kernel of machine code would pass for one that has been read.
TEST_F(RepeatableTest, AKernelIsTheOneOfTheImageThatItWasLoadedFrom) {
  FunctionInfo here = copy_;
  here.name = "in_two_images";
  RememberImage(Named("in_two_images", "%r4, 4;").c_str(), kCode);
  RememberImage(Named("in_two_images", "%r4, 8;").c_str(), kCode + 1);
  AccessOf("in_two_images");
  FunctionInfo elsewhere = here, nowhere = here, unknown = here;
  elsewhere.code = kCode + 1;  // leaves gaps
  nowhere.code = kCode + 2;    // has no text
  unknown.code = 0;
  for (const FunctionInfo* info : {&here, &elsewhere, &nowhere, &unknown}) {
    Launch(*info, {&in_, 0}, {&out_, 0}, 64);
  }
  EXPECT_EQ(Find().launches, (std::vector<bool>{true, false, false, false}));
}

TEST_F(RepeatableTest, AnImageThatIsNotReadInFullProvesNothing) {
  struct {
    uint32_t magic = 0xba55ed50;
    uint16_t version = 1, header_bytes = 16;
    uint64_t bytes = 2 * 64;
    struct {
      uint16_t kind = 1, version = 1;
      uint32_t header_bytes = 32;
      uint64_t bytes = 32;
      uint32_t compressed_bytes = 0, rest[3] = {};
      char payload[32] = {};
    } entries[2];
  } container;
  static_assert(sizeof container == 16 + 2 * 64);
  FunctionInfo partly = copy_;
  partly.code = kCode + 3;
  RememberImage(kKernels, partly.code);
  RememberImage(&container, partly.code);
  AccessOf("copy_all");
  Launch(partly, {&in_, 0}, {&out_, 0}, 64);
  EXPECT_EQ(Find().count, 1u);
  container.entries[1].compressed_bytes = 20;
  RememberImage(&container, partly.code);
  EXPECT_EQ(Find().count, 0u);
}

TEST_F(RepeatableTest, WhatItWritesIsSaidByRange) {
  Launch(copy_, {&in_, 0}, {&out_, 4096}, 1000);
  const Repeatable found = Find();
  ASSERT_EQ(found.again.size(), 1u);
  EXPECT_EQ(AgainAt(found, 1), nullptr);
  const Again* again = AgainAt(found, 0);
  ASSERT_NE(again, nullptr);
  ASSERT_EQ(again->outputs.size(), 1u);
  EXPECT_EQ(again->outputs[0].address, out_.address + 4096);
  EXPECT_EQ(again->outputs[0].bytes, 4000u);
  EXPECT_EQ(again->outputs[0].pointer_at, 8u);
  EXPECT_EQ(again->arguments.size(), 20u);
}

TEST_F(RepeatableTest, LaunchesThatDifferInPointersOnlyAreOfOneKind) {
  Launch(copy_, {&in_, 0}, {&out_, 0}, 1000);
  Launch(copy_, {&in_, 0}, {&out_, 8192}, 1000);
  Launch(copy_, {&in_, 0}, {&out_, 8192}, 999);
  const Repeatable found = Find();
  ASSERT_EQ(found.again.size(), 3u);
  EXPECT_NE(found.again[0].key, found.again[1].key);
  EXPECT_EQ(found.again[0].kind, found.again[1].kind);
  EXPECT_NE(found.again[1].kind, found.again[2].kind);
}

TEST_F(RepeatableTest, LaunchesWithAttributesAreLeftAlone) {
  Launch(copy_, {&in_, 0}, {&out_, 0}, 64, LaunchShape::kOtherWay);
  EXPECT_EQ(Find().count, 0u);
}

// Small plain memory is no touch, but the kernel's text says that the word is used as a pointer.
TEST_F(RepeatableTest, WhatUsesMemoryThatIsNotWatchedMayRunAgainAtOnceOnly) {
  copy_.access = AccessOf("copy_all");
  ASSERT_EQ(copy_.access.size(), 3u);
  Allocation plain;
  plain.id = 3;
  plain.address = 3ull << 32;
  Launch(copy_, {&plain, 256}, {&out_, 0}, 64);
  Launch(copy_, {&in_, 0}, {&plain, 0}, 64);
  Launch(copy_, {&in_, 0}, {&out_, 0}, 64);
  const Repeatable found = Find();
  EXPECT_EQ(found.launches, (std::vector<bool>{true, true, true}));
  EXPECT_EQ(found.at_once, 2u);
  EXPECT_TRUE(found.again[0].unwatched);
  EXPECT_TRUE(found.again[1].unwatched);
  EXPECT_EQ(found.again[1].outputs[0].allocation, nullptr);
  EXPECT_FALSE(found.again[2].unwatched);
}

TEST_F(RepeatableTest, CopiesAndSetsAreNoKernels) {
  Touch touch{&out_, 0, 4096, false, true};
  LaunchView view;
  view.touches = &touch;
  view.touch_count = 1;
  recorder_.Record(view);
  ++launches_;
  const Repeatable found = Find();
  EXPECT_EQ(found.count, 0u);
  EXPECT_EQ(found.refused.size(), 1u);
}

}  // namespace
}  // namespace atp::shim
