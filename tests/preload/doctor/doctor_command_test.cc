// SPDX-License-Identifier: Apache-2.0
// atp doctor on programs whose needs are known, on the simulated machine.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

using Json = nlohmann::json;
const std::string kPrograms = ATP_PROGRAM_FOLDER;

Finished Doctor(std::vector<std::string> arguments, Environment environment = {}) {
  arguments.insert(arguments.begin(), {ATP_COMMAND, "doctor"});
  return RunChild(arguments, environment);
}

Json Findings(const std::vector<std::string>& program, int exit_code, Environment more = {}) {
  std::vector<std::string> arguments = {"--json", "--sim", "tiny"};
  if (!program.empty()) arguments.push_back("--");
  arguments.insert(arguments.end(), program.begin(), program.end());
  const Finished run = Doctor(arguments, more);
  EXPECT_EQ(run.exit_code, exit_code) << run.out << run.err;
  const Json findings = Json::parse(run.out, nullptr, false);
  EXPECT_FALSE(findings.is_discarded()) << run.out;
  return findings;
}

const std::vector<std::string> kDriverProgram = {kPrograms + "/counted_driver",
                                                 kPrograms + "/bump.ptx"};

TEST(Doctor, AMachineIsDescribed) {
  const Json findings = Findings({}, 0);
  EXPECT_TRUE(findings["served"]);
  EXPECT_TRUE(findings["shim_loads"]);
  const Json& device = findings["driver"]["devices"][0];
  EXPECT_GT(device["bytes"], 0);
  for (const char* flag : {"managed", "concurrent_managed_access", "served"}) {
    EXPECT_TRUE(device[flag]) << flag;
  }
  for (const char* flag : {"coherent", "mig"}) EXPECT_FALSE(device[flag]) << flag;
  EXPECT_EQ(findings["driver"]["version"], "13.0");
  EXPECT_TRUE(findings["driver"]["supported"]);
  EXPECT_GT(findings["host_available_bytes"], 0);
  EXPECT_TRUE(findings.contains("host_limited_by"));
  EXPECT_FALSE(findings.contains("program"));
}

TEST(Doctor, AMachineWithoutADriverIsNotServed) {
  const Finished run = Doctor({});
  if (run.out.find("not found") == std::string::npos) GTEST_SKIP() << "a driver is installed here";
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_NE(run.out.find("no CUDA driver"), std::string::npos) << run.out;
}

TEST(Doctor, AProgramOfTheDriverApiIsServedAndItsHooksAndImportsAreNamed) {
  const Json program = Findings(kDriverProgram, 0)["program"];
  EXPECT_EQ(program["exit_code"], 0);
  EXPECT_EQ(program["hooks"]["cuLaunchKernel"], 5);
  EXPECT_EQ(program["lookups"]["get_proc_address_v2"], 0);
  bool imports = false;
  for (const Json& import : program["linked"]) imports |= import["symbol"] == "cuLaunchKernel";
  EXPECT_TRUE(imports) << program["linked"];
}

TEST(Doctor, AProgramOfTheRuntimeLooksUpByVersion) {
  const Json program = Findings({kPrograms + "/counted_shared"}, 0)["program"];
  EXPECT_GT(program["lookups"]["get_proc_address_v2"], 100);
  EXPECT_EQ(program["lookups"]["dlsym_handle"], 1);
  EXPECT_TRUE(program["linked"].empty()) << program["linked"];
}

// The same function, asked for by the runtime for itself and by the program.
TEST(Doctor, WhatTheRuntimeLooksUpIsToldApartFromWhatTheProgramDoes) {
  const auto asked_by = [](const Json& program, const char* object) {
    std::map<std::string, int> ways;
    for (const Json& site : program["lookup_sites"]) {
      const std::string path = site["object"];
      const std::string name = path.substr(path.rfind('/') + 1);
      if (name.rfind(object, 0) == 0) ways[site["way"]] += site["count"].get<int>();
    }
    return ways;
  };
  const Json shared = Findings({kPrograms + "/counted_shared"}, 0)["program"];
  EXPECT_GT(asked_by(shared, "libcudart")["get_proc_address_v2"], 100) << shared;
  EXPECT_TRUE(asked_by(shared, "(program)").empty()) << shared;
  EXPECT_TRUE(shared["runtime_entries"].empty());

  const Json probe = Findings({ATP_LOOKUP_FOLDER "/probe_main",
                               ATP_LOOKUP_FOLDER "/libprobe_new.so", "local", "libcuda.so.1"},
                              1)["program"];
  for (const char* way : {"dlsym_handle", "get_proc_address", "get_proc_address_v2"}) {
    EXPECT_GT(asked_by(probe, "libprobe_new.so")[way], 100) << probe["lookup_sites"];
  }
  EXPECT_TRUE(asked_by(probe, "libcudart").empty());
}

TEST(Doctor, ThroughAShellTheProgramsProcessIsFound) {
  std::string line = kDriverProgram[0] + " " + kDriverProgram[1] + "; true";
  const Json findings = Findings({"/bin/sh", "-c", line}, 0, {{"PATH", "/usr/bin:/bin"}});
  EXPECT_EQ(findings["program"]["processes"], 1);
  EXPECT_EQ(findings["program"]["hooks"]["cuLaunchKernel"], 5);
}

TEST(Doctor, AProgramThatAsksForFreeMemoryFirstIsToldTheSetting) {
  const Json findings = Findings({kPrograms + "/memory_paths", "numbers"}, 0);
  EXPECT_TRUE(findings["program"]["asked_before_allocating"]);
  EXPECT_NE(findings["advice"].dump().find("ATP_REPORT_MEMORY=virtual"), std::string::npos);
  EXPECT_FALSE(Findings(kDriverProgram, 0)["program"]["asked_before_allocating"]);
}

TEST(Doctor, WhatStaysPlainIsNamedWithItsReason) {
  const Json program = Findings({kPrograms + "/memory_paths", "frees"}, 0)["program"];
  EXPECT_GT(program["native"]["small"]["count"], 0);
  const Json captured = Findings({kPrograms + "/memory_paths", "capture"}, 0)["program"];
  EXPECT_EQ(captured["native"]["capture"]["count"], 1) << captured["native"];
  const Json turned = Findings({kPrograms + "/turned", "use"}, 0)["program"];
  EXPECT_EQ(turned["native"]["turned"]["count"], 1) << turned["native"];
}

TEST(Doctor, WhatStaysPlainSinceAnExportWasRefusedIsToldApart) {
  char folder[] = "/tmp/atp-doctor-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/exporters";
  const std::vector<std::string> program = {kPrograms + "/exports", kPrograms + "/libsharing.so"};
  Findings(program, 0, {{"ATP_EXPORTERS", file}});
  const Json again = Findings(program, 1, {{"ATP_EXPORTERS", file}})["program"];  // all plain
  unlink(file.c_str());
  rmdir(folder);
  EXPECT_EQ(again["native"]["remembered"]["count"], 3) << again["native"];
  EXPECT_FALSE(again["native"].contains("exporter")) << again["native"];
  EXPECT_EQ(again["refused_exports"], 0);
}

TEST(Doctor, FunctionsThatAreNotInterceptedAreNamed) {
  const Json findings = Findings({ATP_LOOKUP_FOLDER "/probe_main",
                                  ATP_LOOKUP_FOLDER "/libprobe_new.so", "local", "libcuda.so.1"},
                                 1);
  const std::string unseen = findings["program"]["unseen"].dump();
  for (const char* symbol : {"cuLaunchGrid", "cuMemAlloc", "cuTexObjectCreate"}) {
    EXPECT_NE(unseen.find(std::string("\"") + symbol + "\""), std::string::npos) << symbol;
  }
  EXPECT_EQ(unseen.find("cuLaunchKernel"), std::string::npos) << unseen;
  EXPECT_NE(findings["advice"].dump().find("not intercepted"), std::string::npos);
  EXPECT_TRUE(Findings(kDriverProgram, 0)["program"]["unseen"].empty());
}

TEST(Doctor, AProgramWithoutCudaIsNotServed) {
  const Json findings = Findings({"/bin/true"}, 1);
  EXPECT_NE(findings["reasons"].dump().find("does not use CUDA"), std::string::npos);
}

TEST(Doctor, AStaticProgramIsNotServedAndNotRun) {
  if (access(ATP_GUEST_FOLDER "/static_program", X_OK) != 0) GTEST_SKIP() << "sanitized build";
  const Json findings = Findings({ATP_GUEST_FOLDER "/static_program"}, 1);
  EXPECT_NE(findings["reasons"].dump().find("statically"), std::string::npos);
  EXPECT_FALSE(findings["program"].contains("exit_code"));
}

TEST(Doctor, ASwitchedOffShimServesNobody) {
  const Json findings = Findings(kDriverProgram, 1, {{"ATP_POLICY", "off"}});
  EXPECT_NE(findings["reasons"].dump().find("ATP_POLICY"), std::string::npos);
}

TEST(Doctor, OtherPreloadedLibrariesAreNamed) {
  const std::string other = ATP_GUEST_FOLDER "/libother_hook.so";
  const Json findings = Findings(kDriverProgram, 0, {{"LD_PRELOAD", Preload({other})}});
  EXPECT_NE(findings["advice"].dump().find("libother_hook.so"), std::string::npos);
}

TEST(Doctor, AProgramThatIsNotThereIsAUsageError) {
  const Finished run = Doctor({"--sim", "tiny", "--", "/nonexistent"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("/nonexistent"), std::string::npos);
}

TEST(Doctor, ThePlainFormEndsWithTheVerdict) {
  std::vector<std::string> arguments = {"--sim", "tiny", "--"};
  arguments.insert(arguments.end(), kDriverProgram.begin(), kDriverProgram.end());
  const Finished run = Doctor(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("The program is served.\n"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("PASS"), std::string::npos) << "the program's output is on stderr";
}

}  // namespace
}  // namespace atp::preload
