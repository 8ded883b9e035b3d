// SPDX-License-Identifier: Apache-2.0
#include "shim/ptx_access.h"

#include <gtest/gtest.h>

#include "shim/kernel_images.h"

namespace atp::shim {
namespace {

// A kernel of three pointers and this body; the answer has one letter a pointer: r, w, b(oth), -.
// "?" = not exact.
std::string Accesses(const std::string& body, const std::string& before = "") {
  const std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n" + before +
      ".visible .entry k(\n .param .u64 k_0,\n .param .u64 k_1,\n .param .u64 k_2\n)\n"
      ".maxntid 128, 1, 1\n{\n .reg .b64 %rd<9>;\n .reg .f32 %f<5>;\n"
      "ld.param.u64 %rd1, [k_0];\nld.param.u64 %rd2, [k_1];\nld.param.u64 %rd3, [k_2];\n" +
      body + "\nret;\n}\n";
  const std::vector<KernelAccess> kernels = ReadKernelAccess(ptx);
  if (kernels.size() != 1) return "no kernel";
  if (!kernels[0].exact) return "?";
  std::string letters;
  for (const WordAccess& w : kernels[0].words) letters += "-rwb"[w.reads + 2 * w.writes];
  return letters;
}

TEST(PtxAccess, LoadsReadAndStoresWriteTheParameterTheirAddressComesFrom) {
  EXPECT_EQ(Accesses("ld.global.f32 %f1, [%rd1+16];\nst.global.f32 [%rd2], %f1;"), "rw-");
  EXPECT_EQ(Accesses("cvta.to.global.u64 %rd4, %rd1;\nmul.wide.s32 %rd5, %r1, 4;\n"
                     "add.s64 %rd6, %rd4, %rd5;\nst.global.f32 [%rd6], %f1;"),
            "w--");
  EXPECT_EQ(Accesses("atom.global.add.f32 %f1, [%rd2], %f2;\nred.global.add.f32 [%rd3], %f2;"),
            "-bb");
}

TEST(PtxAccess, TheOrderOfInstructionsDoesNotMatter) {
  EXPECT_EQ(Accesses("L1:\nst.global.f32 [%rd4], %f1;\nmov.u64 %rd4, %rd5;\nmov.u64 %rd5, %rd3;\n"
                     "@%p1 bra L1;"),
            "--w");
}

TEST(PtxAccess, AnAddressFromOneOfTwoParametersCountsForBoth) {
  EXPECT_EQ(Accesses("selp.b64 %rd4, %rd1, %rd3, %p1;\nst.global.f32 [%rd4], %f1;"), "w-w");
}

TEST(PtxAccess, AnIndexThatWasLoadedIsNoPointer) {
  EXPECT_EQ(Accesses("ld.global.s64 %rd4, [%rd1];\nshl.b64 %rd5, %rd4, 2;\n"
                     "add.s64 %rd6, %rd2, %rd5;\nst.global.f32 [%rd6], %f1;"),
            "rw-");
  EXPECT_EQ(Accesses("ld.global.s64 %rd4, [%rd1];\nmad.lo.s64 %rd6, %rd4, 8, %rd2;\n"
                     "st.global.f32 [%rd6], %f1;"),
            "rw-");
}

TEST(PtxAccess, APointerThatWasLoadedMayBeAnyParameters) {
  EXPECT_EQ(Accesses("ld.global.u64 %rd4, [%rd1];\nst.global.f32 [%rd4], %f1;"), "?");
  EXPECT_EQ(Accesses("ld.global.u64 %rd4, [%rd1];\nld.global.f32 %f1, [%rd4];"), "r--");
  EXPECT_EQ(Accesses("st.local.u64 [%rd7], %rd1;\nld.local.u64 %rd4, [%rd7];\n"
                     "st.global.f32 [%rd4], %f1;"),
            "?");
}

TEST(PtxAccess, MemoryOfTheKernelsOwnIsNobodysParameter) {
  EXPECT_EQ(Accesses(".shared .align 4 .b8 tile[512];\nmov.u64 %rd7, tile;\n"
                     "st.shared.f32 [%rd7], %f1;\nst.local.f32 [%rd8], %f1;\n"
                     "cp.async.ca.shared.global [%rd7], [%rd1], 4;"),
            "---");
}

TEST(PtxAccess, ACallIsFollowedOnlyWhenItHarmsNobody) {
  const std::string harmless =
      ".func (.param .b64 r) slow(.param .b64 a)\n{\n.reg .b64 %rd<3>;\n"
      "st.local.u64 [%rd1], %rd2;\nret;\n}\n";
  const std::string harmful = ".func store(.param .b64 a)\n{\nst.global.u32 [%rd1], 1;\nret;\n}\n";
  const std::string call = "{\n.param .b64 p;\nst.param.b64 [p+0], %rd1;\ncall.uni ";
  EXPECT_EQ(Accesses(call + "(r), slow, (p);\n}\nst.global.f32 [%rd2], %f1;", harmless), "-w-");
  EXPECT_EQ(Accesses(call + "store, (p);\n}", harmful), "?");
  EXPECT_EQ(Accesses(call + "unknown, (p);\n}", ".extern .func unknown(.param .b64 a);\n"), "?");
}

TEST(PtxAccess, TheAddressOfAParameterIsNotFollowed) {
  EXPECT_EQ(Accesses("mov.b64 %rd4, k_0;\nld.param.u64 %rd5, [%rd4];\nst.global.f32 [%rd5], %f1;"),
            "?");
}

TEST(PtxAccess, StructuresAreKnownByTheirWords) {
  const std::vector<KernelAccess> kernels = ReadKernelAccess(
      "// a comment with .entry in it\n.entry s(.param .u32 n, .param .align 8 .b8 q[24])\n{\n"
      ".loc 1 2 3\nld.param.v2.u64 {%rd1, %rd2}, [q+8]; /* and ; here */\n"
      "st.global.u32 [%rd2], 0;\n}\n");
  ASSERT_EQ(kernels.size(), 1u);
  EXPECT_EQ(kernels[0].name, "s");
  ASSERT_TRUE(kernels[0].exact);
  ASSERT_EQ(kernels[0].words.size(), 4u);  // n and padding, then the three words of q
  EXPECT_FALSE(kernels[0].words[1].writes);
  // Lanes of a vector are not told apart.
  EXPECT_TRUE(kernels[0].words[2].writes);
  EXPECT_TRUE(kernels[0].words[3].writes);
}

TEST(PtxAccess, DamagedTextGivesNothingOrSomethingButNeverFails) {
  const std::string whole =
      ".version 8.0\n.visible .entry k(.param .u64 a)\n{\nld.param.u64 %rd1, [a];\n"
      "{ .reg .b16 t; mov.b32 {%r1, %r2}, %rd1; }\nst.global.u32 [%rd1], 0;\nret;\n}\n";
  for (size_t n = 0; n < whole.size(); ++n) ReadKernelAccess(whole.substr(0, n));
  for (size_t n = 0; n < whole.size(); ++n) {
    std::string broken = whole;
    for (char c : {'{', '}', '(', ';', '.', '[', '\0'}) {
      broken[n] = c;
      ReadKernelAccess(broken);
    }
  }
}

TEST(KernelImages, KernelsOfOneNameDoWhatAnyOfThemDoes) {
  const std::string head =
      ".version 8.0\n.entry merged(.param .u64 a, .param .u64 b)\n{\n"
      "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n";
  RememberImage((head + "st.global.u32 [%rd1], 0;\n}\n").c_str());
  RememberImage((head + "ld.global.u32 %r1, [%rd2];\n}\n").c_str());
  const std::span<const WordAccess> access = AccessOf("merged");
  ASSERT_EQ(access.size(), 2u);
  EXPECT_TRUE(access[0].writes);
  EXPECT_TRUE(access[1].reads);
  EXPECT_FALSE(access[1].writes);
  RememberImage((head + "call.uni elsewhere;\n}\n").c_str());
  EXPECT_TRUE(AccessOf("merged").empty());
  EXPECT_TRUE(AccessOf("never_loaded").empty());
  EXPECT_TRUE(AccessOf(nullptr).empty());
}

TEST(KernelImages, WhatIsNotPtxIsLeftAlone) {
  RememberImage(nullptr);
  RememberImage("");
  RememberImage(
      "\x7f"
      "ELF rest");
  RememberImage("hello");
  RememberImageFile("/no/such/file.ptx");
}

}  // namespace
}  // namespace atp::shim
