// SPDX-License-Identifier: Apache-2.0
#include "shim/settings.h"

#include <gtest/gtest.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <new>
#include <string>
#include <vector>

#include "shim/shimlog.h"

namespace atp::shim {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

TEST(ParseSize, AcceptsTheDocumentedForms) {
  const std::map<std::string, uint64_t> forms = {{"16GiB", 16 * kGiB},
                                                 {"16G", 16 * kGiB},
                                                 {"512MiB", kGiB / 2},
                                                 {"512M", kGiB / 2},
                                                 {"2TiB", 2048 * kGiB},
                                                 {"4K", 4096},
                                                 {"12345", 12345},
                                                 {"7B", 7},
                                                 {"0", 0}};
  for (const auto& [text, bytes] : forms) {
    Size size;
    EXPECT_TRUE(ParseSize(text.c_str(), &size)) << text;
    EXPECT_TRUE(size.given);
    EXPECT_EQ(size.Of(kGiB), bytes) << text;
  }
}

TEST(ParseSize, APercentageIsOfTheWhole) {
  Size size;
  ASSERT_TRUE(ParseSize("80%", &size));
  EXPECT_EQ(size.Of(1000), 800u);
  EXPECT_EQ(size.Of(UINT64_MAX), UINT64_MAX / 100 * 80 + UINT64_MAX % 100 * 80 / 100);
}

TEST(ParseSize, RefusesEverythingElse) {
  for (const char* text : {"", "GiB", "-1", "1.5GiB", "16GB", "16 GiB", "16GiBx", "101%", "1%%",
                           "0x10", "99999999999999999999", "18446744073709551615G", "1KK"}) {
    Size size;
    EXPECT_FALSE(ParseSize(text, &size)) << text;
    EXPECT_FALSE(size.given) << text;
  }
}

TEST(ParseDeviceSizes, OneForAllOrOneForEach) {
  DeviceSizes sizes;
  ASSERT_TRUE(ParseDeviceSizes("16GiB", &sizes));
  EXPECT_EQ(sizes.Of(5).Of(0), 16 * kGiB);
  ASSERT_TRUE(ParseDeviceSizes("0=16GiB,3=50%", &sizes));
  EXPECT_EQ(sizes.Of(0).Of(0), 16 * kGiB);
  EXPECT_EQ(sizes.Of(3).Of(100), 50u);
  EXPECT_FALSE(sizes.Of(1).given);
}

TEST(ParseDeviceSizes, RefusesMalformedListsWhole) {
  for (const char* text : {"=1G", "0=1G,", "0=1G,x=2G", "64=1G", "0=,1=1G", "0=1G,1", "-1=1G"}) {
    DeviceSizes sizes;
    EXPECT_FALSE(ParseDeviceSizes(text, &sizes)) << text;
    EXPECT_FALSE(sizes.Of(0).given) << text;
  }
}

TEST(ParseBool, OffHasFiveSpellings) {
  for (const char* text : {"0", "off", "false", "no", "", "OFF", "False"}) {
    bool value = true;
    EXPECT_TRUE(ParseBool(text, &value)) << text;
    EXPECT_FALSE(value) << text;
  }
  bool value = false;
  EXPECT_TRUE(ParseBool("yes", &value));
  EXPECT_TRUE(value);
  EXPECT_FALSE(ParseBool("maybe", &value));
}

TEST(ParseDisable, NamesPartsAndRefusesUnknownOnes) {
  uint32_t mask = 0;
  ASSERT_TRUE(ParseDisable("discard,touch", &mask));
  EXPECT_EQ(mask, kDisableDiscard | kDisableTouch);
  EXPECT_FALSE(ParseDisable("discard,tuoch", &mask));
  EXPECT_FALSE(ParseDisable("discard,", &mask));
  ASSERT_TRUE(ParseDisable("0", &mask));
  EXPECT_EQ(mask, 0u);
}

std::map<std::string, std::string> environment;
std::vector<std::string> complaints;

const char* OfEnvironment(const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}
void Complain(const char* name, const char* value, const char*) {
  complaints.push_back(std::string(name) + "=" + value);
}

Configuration Parse(std::map<std::string, std::string> variables) {
  environment = std::move(variables);
  complaints.clear();
  Configuration parsed;
  ParseSettings(OfEnvironment, &parsed, Complain);
  return parsed;
}

TEST(ParseSettings, NothingSetMeansTheDefaults) {
  const Configuration parsed = Parse({});
  EXPECT_EQ(parsed.policy, Policy::kLearned);
  EXPECT_FALSE(parsed.budget.Of(0).given);
  EXPECT_EQ(parsed.disabled, 0u);
  EXPECT_TRUE(complaints.empty());
}

TEST(ParseSettings, PolicyOffHasAllSpellingsOfOff) {
  for (const char* text : {"off", "0", "no", "false", ""}) {
    EXPECT_EQ(Parse({{"ATP_POLICY", text}}).policy, Policy::kOff) << text;
  }
  EXPECT_EQ(Parse({{"ATP_POLICY", "managed"}}).policy, Policy::kManaged);
}

TEST(ParseSettings, ABadValueIsReportedOnceAndTheDefaultHolds) {
  const Configuration parsed = Parse({{"ATP_POLICY", "fast"}, {"ATP_BUDGET", "lots"}});
  EXPECT_EQ(parsed.policy, Policy::kLearned);
  EXPECT_FALSE(parsed.budget.Of(0).given);
  EXPECT_EQ(complaints, (std::vector<std::string>{"ATP_POLICY=fast", "ATP_BUDGET=lots"}));
}

// The names are those that the parser asks for; nothing of any kind reads like this.
TEST(ParseSettings, NoVariableTakesNonsenseAndEachSaysSoOnce) {
  static std::vector<std::string> names;
  names.clear();
  Configuration ignored;
  ParseSettings([](const char* name) -> const char* { return names.emplace_back(name), nullptr; },
                &ignored, Complain);
  EXPECT_GE(names.size(), 19u);
  const std::string nonsense(600, '?');
  // Byte for byte, padding included.
  alignas(Configuration) unsigned char parsed[sizeof(Configuration)], defaults[sizeof parsed];
  for (auto* bytes : {parsed, defaults}) memset(bytes, 0, sizeof parsed);
  new (defaults) Configuration;
  auto* configuration = new (parsed) Configuration;
  for (const std::string& name : names) {
    environment = {{name, nonsense}};
    complaints.clear();
    ParseSettings(OfEnvironment, configuration, Complain);
    EXPECT_EQ(complaints, std::vector<std::string>{name + "=" + nonsense});
    EXPECT_EQ(memcmp(parsed, defaults, sizeof parsed), 0) << name;
  }
}

TEST(ParseSettings, WhoNamesAnUnknownPartIsToldAllThatThereAre) {
  static std::string wanted;
  Configuration parsed;
  ParseSettings(
      [](const char* name) -> const char* {
        return std::string(name) == "ATP_DISABLE" ? "nonsense" : nullptr;
      },
      &parsed, [](const char*, const char*, const char* form) { wanted = form; });
  std::string list;
  for (char c : wanted.substr(std::string("a list of ").size())) {
    if (c != ' ') list += c;
  }
  uint32_t mask = 0;
  EXPECT_TRUE(ParseDisable(list.c_str(), &mask)) << list;
  EXPECT_EQ(mask, 2u * kDisableNeighbours - 1) << list;
}

TEST(ParseSettings, UnknownVariablesOfOthersAreNobodysBusiness) {
  Parse({{"ATP_HOLD_TIME", "7"}, {"ATP_ENABLED", "x"}, {"ATP_SIM_GPU", "tiny"}});
  EXPECT_TRUE(complaints.empty());
}

TEST(ParseSettings, MemoryToReportIsAWordOrASize) {
  EXPECT_EQ(Parse({{"ATP_REPORT_MEMORY", "virtual"}}).report_memory, ReportMemory::kVirtual);
  const Configuration parsed = Parse({{"ATP_REPORT_MEMORY", "24GiB"}});
  EXPECT_EQ(parsed.report_memory, ReportMemory::kSize);
  EXPECT_EQ(parsed.report_size.Of(0), 24 * kGiB);
}

TEST(ParseSettings, AccessIsToldInTheLogOrInAFile) {
  EXPECT_FALSE(Parse({{"ATP_ACCESS_STATS", "off"}}).access_stats);
  EXPECT_TRUE(Parse({{"ATP_ACCESS_STATS", "on"}}).access_stats);
  EXPECT_STREQ(Parse({{"ATP_ACCESS_STATS", "on"}}).access_file, "");
  EXPECT_TRUE(Parse({{"ATP_ACCESS_STATS", "/tmp/a.%p"}}).access_stats);
  EXPECT_STREQ(Parse({{"ATP_ACCESS_STATS", "/tmp/a.%p"}}).access_file, "/tmp/a.%p");
}

TEST(ParseSettings, RecomputationCanBeReportedTriedAndAskedFor) {
  EXPECT_EQ(Parse({}).recompute, Recompute::kOff);
  EXPECT_EQ(Parse({{"ATP_RECOMPUTE", "off"}}).recompute, Recompute::kOff);
  EXPECT_EQ(Parse({{"ATP_RECOMPUTE", "report"}}).recompute, Recompute::kReport);
  EXPECT_EQ(Parse({{"ATP_RECOMPUTE", "shadow"}}).recompute, Recompute::kShadow);
  EXPECT_EQ(Parse({{"ATP_RECOMPUTE", "1"}}).recompute, Recompute::kOn);
  EXPECT_TRUE(complaints.empty());
  EXPECT_EQ(Parse({{"ATP_RECOMPUTE", "2"}}).recompute, Recompute::kOff);
  EXPECT_EQ(complaints, std::vector<std::string>{"ATP_RECOMPUTE=2"});
}

TEST(ParseSettings, WaitingIsADuration) {
  EXPECT_EQ(Parse({}).wait_ms, 0u);
  EXPECT_EQ(Parse({{"ATP_WAIT", "30s"}}).wait_ms, 30'000u);
  EXPECT_EQ(Parse({{"ATP_WAIT", "250ms"}}).wait_ms, 250u);
  EXPECT_EQ(Parse({{"ATP_WAIT", "2m"}}).wait_ms, 120'000u);
  EXPECT_EQ(Parse({{"ATP_WAIT", "7"}}).wait_ms, 7'000u);
  EXPECT_EQ(Parse({{"ATP_WAIT", "off"}}).wait_ms, 0u);
  for (const char* bad : {"soon", "3h", "s", "-1s", "99999999999999999999s"}) {
    EXPECT_EQ(Parse({{"ATP_WAIT", bad}}).wait_ms, 0u);
    EXPECT_EQ(complaints.size(), 1u) << bad;
  }
}

TEST(ParseSettings, TheLedgerIsAFileOrNone) {
  EXPECT_FALSE(Parse({{"ATP_LEDGER", "on"}}).no_ledger);
  EXPECT_TRUE(Parse({{"ATP_LEDGER", "off"}}).no_ledger);
  EXPECT_STREQ(Parse({{"ATP_LEDGER", "/run/ledger"}}).ledger_file, "/run/ledger");
}

TEST(ParseSettings, ARecordIsKeptInAFolderOrNotAtAll) {
  EXPECT_FALSE(Parse({}).no_record);
  EXPECT_TRUE(Parse({{"ATP_RECORD", "off"}}).no_record);
  EXPECT_STREQ(Parse({{"ATP_RECORD", "/run/atp"}}).record_folder, "/run/atp");
  EXPECT_TRUE(complaints.empty());
  Parse({{"ATP_RECORD", "not/absolute"}});
  EXPECT_EQ(complaints, std::vector<std::string>{"ATP_RECORD=not/absolute"});
}

TEST(ParseSettings, AFrameworkThatNobodyKnowsIsReported) {
  for (const char* known : {"auto", "off", "torch-async", "jax,tensorflow"}) {
    Parse({{"ATP_FRAMEWORK", known}});
    EXPECT_TRUE(complaints.empty()) << known;
  }
  Parse({{"ATP_FRAMEWORK", "caffe"}});
  EXPECT_EQ(complaints, std::vector<std::string>{"ATP_FRAMEWORK=caffe"});
}

TEST(ExpandFileName, ReplacesProcessHostAndRank) {
  char out[256];
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  ASSERT_TRUE(ExpandFileName("a-%p-%r-%%-%x", out, sizeof out));
  unsetenv("OMPI_COMM_WORLD_RANK");
  EXPECT_EQ(std::string(out), "a-" + std::to_string(getpid()) + "-3-%-%x");
  char host[256] = "";
  gethostname(host, sizeof host);
  ASSERT_TRUE(ExpandFileName("%h", out, sizeof out));
  EXPECT_STREQ(out, host);
}

TEST(ExpandFileName, SaysWhenTheNameDoesNotFit) {
  char out[8];
  EXPECT_TRUE(ExpandFileName("1234567", out, sizeof out));
  EXPECT_FALSE(ExpandFileName("12345678", out, sizeof out));
}

}  // namespace
}  // namespace atp::shim
