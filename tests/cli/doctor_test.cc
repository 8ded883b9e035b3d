// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <gtest/gtest.h>

namespace atp::cli {
namespace {

using Json = nlohmann::ordered_json;

DriverProbe Machine() {
  DriverProbe probe;
  probe.loaded = true;
  probe.version = 12040;
  probe.cards.push_back({"Card", uint64_t{1} << 34, 8, 0, true, true, false});
  return probe;
}

Json Findings(const DriverProbe& probe) {
  return {{"driver", DescribeDriver("libcuda.so.1", probe)},
          {"policy", ""},
          {"other_preloads", Json::array()},
          {"shim_loads", true},
          {"shim_error", ""}};
}

std::string Reasons(const Json& findings) { return Json(WhyNotServed(findings)).dump(); }

Json Report() {
  return {{"active", true},
          {"hooks", {{"cuMemAlloc_v2", 3}}},
          {"lookups", {{"dlsym_handle", 1}, {"second_driver", 0}}},
          {"linked", Json::array()},
          {"unseen", Json::array()},
          {"runtime_entries", Json::array()},
          {"lookup_sites", Json::array()},
          {"own_managed", {{"count", 0}, {"bytes", 0}}},
          {"native", {{"small", {{"count", 2}, {"bytes", 100}}}}},
          {"refused_exports", 0},
          {"asked_before_allocating", false},
          {"namespaces", 1},
          {"devices", {{{"device", 0}, {"ever_managed", true}}}}};
}

Json WithProgram(const std::vector<Json>& reports) {
  Json findings = Findings(Machine());
  findings["program"] = {{"unservable", ""}};
  findings["program"].update(MergeReports(reports));
  return findings;
}

TEST(Doctor, CallsThatAreNotInterceptedAreNamedWithWhoMakesThem) {
  Json report = Report();
  report["unseen"] = {{{"object", "libold.so"}, {"symbol", "cuLaunchGrid"}},
                      {{"object", "libold.so"}, {"symbol", "cuMemAlloc"}},
                      {{"object", "(dlsym)"}, {"symbol", "cuLaunch"}}};
  const Json advice = Advice(WithProgram({report}));
  ASSERT_EQ(advice.size(), 2u) << advice;
  EXPECT_NE(advice[0].get<std::string>().find("it looks up functions that are not intercepted"),
            std::string::npos);
  EXPECT_NE(advice[0].get<std::string>().find(": cuLaunch"), std::string::npos);
  EXPECT_NE(advice[1].get<std::string>().find("libold.so links"), std::string::npos);
  EXPECT_NE(advice[1].get<std::string>().find("cuLaunchGrid, cuMemAlloc"), std::string::npos);
}

// What the doctor prints of a program with these reports.
std::string TextOf(const std::vector<Json>& reports) {
  Json findings = Findings(Machine());
  findings["host_available_bytes"] = 0;
  findings["advice"] = findings["reasons"] = Json::array();
  findings["served"] = true;
  findings["program"] = {{"file", "program"}, {"unservable", ""}};
  findings["program"].update(MergeReports(reports));
  return AsText(findings);
}

TEST(Doctor, ManagedMemoryOfTheProgramsOwnIsTold) {
  Json report = Report();
  report["own_managed"] = {{"count", 3}, {"bytes", 3 << 20}};
  const std::string text = TextOf({report});
  EXPECT_NE(text.find("3 allocations of managed memory, 3 MiB"), std::string::npos) << text;
}

TEST(Doctor, WhoLooksUpInWhichWayIsTold) {
  Json report = Report();
  report["lookups"] = {{"get_proc_address_v2", 420}, {"dlsym_handle", 0}, {"second_driver", 0}};
  const char* runtime = "/usr/lib/libcudart.so.13";
  report["lookup_sites"] = {
      {{"object", runtime}, {"way", "get_proc_address_v2"}, {"count", 400}},
      {{"object", runtime}, {"way", "get_proc_address_v2"}, {"count", 17}},
      {{"object", "(program)"}, {"way", "get_proc_address_v2"}, {"count", 3}}};
  report["runtime_entries"] = {
      {{"object", "/opt/libframework.so"}, {"symbol", "cudaGetDriverEntryPointByVersion"}}};
  const std::string text = TextOf({report});
  for (const char* line : {"looks up      420 functions by cuGetProcAddress_v2\n"
                           "  417 from libcudart.so.13, the CUDA runtime (places in its code: 2)\n"
                           "  3 from (program) (places in its code: 1)\n",
                           "looks up      through the runtime: libframework.so links "
                           "cudaGetDriverEntryPointByVersion\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(Doctor, AnOrdinaryMachineAndProgramAreServed) {
  EXPECT_TRUE(WhyNotServed(Findings(Machine())).empty());
  EXPECT_TRUE(WhyNotServed(WithProgram({Report()})).empty());
  EXPECT_TRUE(Advice(WithProgram({Report()})).empty());
}

// What the doctor says of one framework.
std::string Framework(const frameworks::Recognised& found) {
  Json findings = Findings(Machine());
  findings["host_available_bytes"] = 0;
  findings["advice"] = findings["reasons"] = Json::array();
  findings["served"] = true;
  findings["program"] = {{"file", "python3"}, {"frameworks", DescribeFrameworks({found})}};
  return AsText(findings);
}

const frameworks::Profile kProfile = {
    .key = "key", .name = "Name", .memory = "asks for much", .set = {{"VARIABLE", "value"}}};

TEST(Doctor, AFrameworkIsNamedWithWhatItsProfileSets) {
  const std::string text =
      Framework({&kProfile, frameworks::How::kCommand, {kProfile.set[0]}, nullptr});
  EXPECT_NE(text.find("framework     Name: asks for much\n  its profile sets VARIABLE=value\n"),
            std::string::npos)
      << text;
}

TEST(Doctor, AFrameworkThatIsOnlyInstalledIsToldApart) {
  const std::string text = Framework({&kProfile, frameworks::How::kInstalled, {}, nullptr});
  EXPECT_NE(text.find("installed     Name: asks for much\n  its profile sets nothing\n"),
            std::string::npos)
      << text;
}

TEST(Doctor, AUserWhoHasDecidedIsTold) {
  const std::string text = Framework({&kProfile, frameworks::How::kCommand, {}, "OTHER"});
  EXPECT_NE(text.find("  its profile sets nothing, because OTHER is there\n"), std::string::npos)
      << text;
}

TEST(Doctor, ADriverOlderThanTheTableOfHooksIsRefusedByName) {
  DriverProbe old = Machine();
  old.version = 11080;
  EXPECT_NE(Reasons(Findings(old)).find("CUDA 11.8"), std::string::npos);
}

TEST(Doctor, AMachineIsServedWhenOneOfItsDevicesIs) {
  DriverProbe probe = Machine();
  probe.cards[0].coherent = true;
  EXPECT_NE(Reasons(Findings(probe)).find("coherent"), std::string::npos);
  probe.cards.push_back(Machine().cards[0]);
  EXPECT_TRUE(WhyNotServed(Findings(probe)).empty());
  probe.cards[1].concurrent = false;
  EXPECT_FALSE(WhyNotServed(Findings(probe)).empty());
}

TEST(Doctor, WhatADeviceCanDoIsSaid) {
  DriverProbe probe = Machine();
  const auto says = [&](const char* line) {
    Json findings = Findings(probe);
    findings["host_available_bytes"] = uint64_t{3} << 30;
    findings["host_limited_by"] = "control group";
    findings["advice"] = findings["reasons"] = Json::array();
    findings["served"] = false;
    return AsText(findings).find(line) != std::string::npos;
  };
  EXPECT_TRUE(
      says("Card, 16 GiB, sm_80: served\n  managed memory, concurrent access of host and "
           "device to it, not coherent with host memory\n"));
  EXPECT_TRUE(says("host memory   3 GiB available, by the limit of the control group\n"));
  probe.cards[0].coherent = true;
  EXPECT_TRUE(says("device to it, coherent with host memory\n"));
  probe.cards[0].concurrent = false;
  EXPECT_TRUE(says("not served\n  managed memory, no concurrent access"));
  probe.cards[0].managed = false;
  EXPECT_TRUE(says("\n  no managed memory, "));
  probe.cards[0].name = "Card MIG 1g.10gb";
  EXPECT_TRUE(says(", a MIG slice: "));
}

TEST(Doctor, AMigSliceIsNamedSo) {
  DriverProbe probe = Machine();
  probe.cards[0].name = "Card MIG 1g.10gb";
  EXPECT_TRUE(DescribeDriver("x", probe)["devices"][0]["mig"]);
}

TEST(Doctor, ReportsOfSeveralProcessesAreAdded) {
  const Json merged = MergeReports({Report(), Report()});
  EXPECT_EQ(merged["processes"], 2);
  EXPECT_EQ(merged["hooks"]["cuMemAlloc_v2"], 6);
  EXPECT_EQ(merged["native"]["small"]["bytes"], 200);
  EXPECT_TRUE(merged["ever_managed"]);
}

TEST(Doctor, ASecondCopyOfTheDriverIsAReason) {
  Json report = Report();
  report["lookups"]["second_driver"] = 4;
  EXPECT_NE(Reasons(WithProgram({report})).find("second copy"), std::string::npos);
}

TEST(Doctor, AProgramWhoseMemoryStaysPlainIsNotServed) {
  Json report = Report();
  report["devices"][0]["ever_managed"] = false;
  EXPECT_FALSE(WhyNotServed(WithProgram({report})).empty());
}

TEST(Doctor, AProgramThatLeavesNoReportIsNotServed) {
  EXPECT_FALSE(WhyNotServed(WithProgram({})).empty());
}

TEST(Doctor, NamespacesAndRefusedExportsAreSaid) {
  Json report = Report();
  report["namespaces"] = 2;
  report["refused_exports"] = 1;
  const std::string advice = Json(Advice(WithProgram({report}))).dump();
  EXPECT_NE(advice.find("dlmopen"), std::string::npos);
  EXPECT_NE(advice.find("ATP_NATIVE"), std::string::npos);
}

}  // namespace
}  // namespace atp::cli
