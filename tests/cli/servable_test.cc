// SPDX-License-Identifier: Apache-2.0
#include "cli/servable.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace atp::cli {
namespace {

class Servable : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atp_servable_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Write(const std::string& name, const std::string& content) {
    const std::string file = folder_ + "/" + name;
    std::ofstream(file, std::ios::binary) << content;
    chmod(file.c_str(), 0755);
    return file;
  }
  // A file header with one segment, as the linker would write it.
  std::string Elf(unsigned char elf_class, uint16_t machine, const std::string& interpreter) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = elf_class;
    header.e_machine = machine;
    header.e_phoff = sizeof header;
    header.e_phnum = 1;
    Elf64_Phdr segment{};
    segment.p_type = interpreter.empty() ? PT_LOAD : PT_INTERP;
    segment.p_offset = sizeof header + sizeof segment;
    segment.p_filesz = interpreter.size() + 1;
    std::string file(reinterpret_cast<const char*>(&header), sizeof header);
    file.append(reinterpret_cast<const char*>(&segment), sizeof segment);
    return file + interpreter + '\0';
  }
  std::string folder_;
};

TEST_F(Servable, ADynamicProgramIs) { EXPECT_EQ(WhyNotServable("/proc/self/exe"), ""); }

TEST_F(Servable, AStaticProgramIsNot) {
  EXPECT_NE(WhyNotServable(Write("a", Elf(ELFCLASS64, EM_X86_64, ""))).find("statically"),
            std::string::npos);
}

TEST_F(Servable, AnotherArchitectureIsNot) {
  EXPECT_NE(
      WhyNotServable(Write("a", Elf(ELFCLASS32, EM_386, "/lib/ld-linux.so.2"))).find("x86-64"),
      std::string::npos);
  EXPECT_NE(WhyNotServable(Write("b", Elf(ELFCLASS64, EM_AARCH64, "/lib/ld.so"))).find("x86-64"),
            std::string::npos);
}

TEST_F(Servable, AProgramOfAnotherCLibraryIsNot) {
  EXPECT_NE(WhyNotServable(Write("a", Elf(ELFCLASS64, EM_X86_64, "/lib/ld-musl-x86_64.so.1")))
                .find("musl"),
            std::string::npos);
}

TEST_F(Servable, AScriptIsJudgedByItsInterpreter) {
  EXPECT_EQ(WhyNotServable(Write("good", "#!/bin/sh\n")), "");
  EXPECT_EQ(WhyNotServable(Write("env", "#!/usr/bin/env -S sh -e\n")), "");
  const std::string bad = Write("static", Elf(ELFCLASS64, EM_X86_64, ""));
  EXPECT_NE(WhyNotServable(Write("script", "#!" + bad + "\n")).find("statically"),
            std::string::npos);
}

TEST_F(Servable, AScriptThatInterpretsItselfEndsTheSearch) {
  const std::string self = folder_ + "/self";
  Write("self", "#!" + self + "\n");
  EXPECT_NE(WhyNotServable(self), "");
}

TEST_F(Servable, ASetuidProgramOfSomebodyElseIsNot) {
  const std::string file = Write("a", Elf(ELFCLASS64, EM_X86_64, "/lib64/ld-linux-x86-64.so.2"));
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(chown(file.c_str(), 1, 1), 0);
  ASSERT_EQ(chmod(file.c_str(), 04755), 0);
  EXPECT_NE(WhyNotServable(file).find("setuid"), std::string::npos);
}

TEST_F(Servable, ATextFileIsNot) { EXPECT_NE(WhyNotServable(Write("a", "hello")), ""); }

TEST_F(Servable, AProgramIsFoundAsExecWould) {
  const std::string file = Write("prog", "");
  EXPECT_EQ(FindProgram("prog", "/nonexistent:" + folder_), file);
  EXPECT_EQ(FindProgram(file, ""), file);
  EXPECT_EQ(FindProgram("prog", "/nonexistent"), "");
  EXPECT_EQ(FindProgram("./nonexistent", folder_), "");
}

}  // namespace
}  // namespace atp::cli
