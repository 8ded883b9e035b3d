// SPDX-License-Identifier: Apache-2.0
#include "daemon/settings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace atp::daemon {
namespace {

class SettingsTest : public testing::Test {
 protected:
  SettingsTest() : folder_(testing::TempDir() + "settings." + std::to_string(getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~SettingsTest() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& text) const {
    std::ofstream(folder_ / "conf") << text;
    return "--config=" + (folder_ / "conf").string();
  }
  int Read(std::vector<std::string> arguments) {
    const Lookup lookup = [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
    return ReadSettings(arguments, lookup, &settings_, nullptr);
  }

  std::filesystem::path folder_;
  std::map<std::string, std::string> environment_;
  Settings settings_;
};

TEST_F(SettingsTest, AFlagComesBeforeTheEnvironmentAndThatBeforeAFile) {
  const std::string file = File("store-workloads = 5\nmetrics = 127.0.0.1:1\nstore = /from/file\n");
  environment_ = {{"ATPD_STORE_WORKLOADS", "6"}, {"ATPD_METRICS", "127.0.0.1:2"}};
  ASSERT_EQ(Read({file, "--store-workloads", "7"}), -1);
  EXPECT_EQ(settings_.limits.workloads, 7u);
  EXPECT_EQ(settings_.metrics, "127.0.0.1:2");
  EXPECT_EQ(settings_.store, "/from/file");
}

TEST_F(SettingsTest, TheUsersFileComesBeforeTheMachinesAndRootHasTheMachinesAlone) {
  std::filesystem::create_directories(folder_ / "user/atp");
  std::ofstream(folder_ / "machine.conf") << "store-workloads = 5\nmetrics = 127.0.0.1:5\n";
  std::ofstream(folder_ / "user/atp/atpd.conf") << "store-workloads = 6\n";
  const std::string config = folder_ / "user";
  const Lookup lookup = [&](const char* name) {
    return std::string(name) == "XDG_CONFIG_HOME" ? config.c_str() : nullptr;
  };
  WhoAsks who;
  who.machine_file = folder_ / "machine.conf";
  for (const bool root : {false, true}) {
    who.root = root;
    Settings settings;
    ASSERT_EQ(ReadSettings({}, lookup, &settings, nullptr, who), -1);
    EXPECT_EQ(settings.limits.workloads, root ? 5u : 6u);
    EXPECT_EQ(settings.metrics, "127.0.0.1:5");
    // And each before both.
    ASSERT_EQ(ReadSettings({"--store-workloads=7"}, lookup, &settings, nullptr, who), -1);
    EXPECT_EQ(settings.limits.workloads, 7u);
  }
}

TEST_F(SettingsTest, WhatIsNoKeyOrNoValueIsRefused) {
  for (const char* text : {"colour = red\n", "store-workloads = -1\n", "tune = perhaps\n",
                           "tune-cpu = 2\n", "check-config = true\n", "[section]\nstore = /a\n",
                           "machine = /not/there\n", "store-bytes = many\n"}) {
    EXPECT_EQ(Read({File(text)}), 2) << text;
  }
  EXPECT_EQ(Read({"--config", "/not/there"}), 2);
}

TEST_F(SettingsTest, TuningCanBeSwitchedOffAndBounded) {
  ASSERT_EQ(Read({File("tune = off\ntune-cpu = 0.25\ntune-idle = 3\n")}), -1);
  EXPECT_FALSE(settings_.tuning.on);
  EXPECT_DOUBLE_EQ(settings_.tuning.share, 0.25);
  EXPECT_EQ(settings_.tuning.idle.count(), 3);
}

TEST_F(SettingsTest, AMachineFileSetsWhatReplaysCost) {
  std::ofstream(folder_ / "machine") << R"({"format":"atp-machine","version":1,)"
                                        R"("h2d_bytes_per_s":1e9,"d2h_bytes_per_s":1e9,)"
                                        R"("prefetch_block_us":7,"fault_batch_us":40})";
  ASSERT_EQ(Read({File("machine = " + (folder_ / "machine").string() + "\n")}), -1);
  EXPECT_DOUBLE_EQ(settings_.tuning.costs.move_seconds, 7e-6);
  EXPECT_DOUBLE_EQ(settings_.tuning.costs.batch_seconds, 40e-6);
}

}  // namespace
}  // namespace atp::daemon
