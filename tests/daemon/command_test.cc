// SPDX-License-Identifier: Apache-2.0
// The commands that people use with the daemon, and its own options.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

#include "daemon/store.h"
#include "tests/daemon/daemon_process.h"
#include "tests/protocol/sample_learned.h"

namespace atp::daemon {
namespace {

using protocol::SampleLearned;

struct Finished {
  int exit_code;
  std::string text;  // both outputs
};

Finished Shell(const std::string& command) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "re");
  Finished finished{-1, ""};
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    finished.text.append(buffer, got);
  }
  const int status = pclose(pipe);
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  return finished;
}

class Command : public testing::Test {
 protected:
  Command() : folder_(testing::TempDir() + "command." + std::to_string(getpid())) {
    if (std::string(ATP_COMMAND).empty()) return;
    std::filesystem::remove_all(folder_);
    Store store(folder_ / "atpd.db", {});
    const uint32_t user = geteuid();
    for (const uint64_t seed : {0, 1000}) {
      const protocol::Learned learned = SampleLearned(1, seed);
      const uint64_t id = store.Remember(user, learned, protocol::Write(learned), 7);
      store.Decide(id, {0, "rejected", 0.1, 0.2, "as a test wants it"});
    }
    store.Remember(user + 1, SampleLearned(1, 2000), protocol::Write(SampleLearned(1, 2000)), 7);
  }
  ~Command() override { std::filesystem::remove_all(folder_); }
  void SetUp() override {
    if (std::string(ATP_COMMAND).empty()) GTEST_SKIP() << "the command is not built";
  }
  Finished Atp(const std::string& words) const {
    return Shell("ATP_SOCKET=" + (folder_ / "atpd.sock").string() + " " ATP_COMMAND " " + words);
  }
  nlohmann::json Workloads() const {
    return nlohmann::json::parse(Atp("status --json").text)["daemon"]["workloads"];
  }

  std::filesystem::path folder_;
};

TEST_F(Command, StatusShowsOnesOwnWorkloads) {
  DaemonProcess daemon(folder_, {"--tune", "off"});  // it would decide anew
  const nlohmann::json workloads = Workloads();
  ASSERT_EQ(workloads.size(), 2u);
  EXPECT_EQ(workloads[0]["command"], "train --seed 1000");
  EXPECT_EQ(workloads[0]["runs"][0]["planned_iterations"], 7);
  const std::string text = Atp("status").text;
  EXPECT_NE(text.find("remembers 3 workloads"), std::string::npos) << text;
  EXPECT_NE(text.find("rejected"), std::string::npos) << text;
  EXPECT_NE(Shell(ATP_DAEMON_FILE " --dump-stats --socket " + daemon.socket())
                .text.find("train --seed 1000"),
            std::string::npos);
}

TEST_F(Command, WithoutADaemonStatusSaysSoAndTheOthersFail) {
  EXPECT_EQ(Atp("status").exit_code, 0);
  EXPECT_NE(Atp("status").text.find("no daemon"), std::string::npos);
  for (const char* words : {"forget --all", "export /dev/null"}) {
    const Finished finished = Atp(words);
    EXPECT_EQ(finished.exit_code, 1) << words;
    EXPECT_NE(finished.text.find("no atpd listens at"), std::string::npos) << finished.text;
  }
}

TEST_F(Command, WhatIsExportedCanBeImported) {
  DaemonProcess daemon(folder_);
  const std::string file = folder_ / "out";
  EXPECT_EQ(Atp("export " + file).exit_code, 0);
  EXPECT_EQ(Atp("forget --all").exit_code, 0);
  EXPECT_TRUE(Workloads().empty());
  EXPECT_EQ(Atp("import " + file).exit_code, 0);
  EXPECT_EQ(Workloads().size(), 2u);
}

TEST_F(Command, ADamagedExportIsRefusedWhole) {
  DaemonProcess daemon(folder_);
  const std::string file = folder_ / "out";
  EXPECT_EQ(Atp("export " + file).exit_code, 0);
  EXPECT_EQ(Atp("forget --all").exit_code, 0);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 8);
  const Finished finished = Atp("import " + file);
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.text.find("ends too early"), std::string::npos) << finished.text;
  EXPECT_TRUE(Workloads().empty());
}

TEST_F(Command, ForgetNamesWhatIsNotThere) {
  DaemonProcess daemon(folder_);
  const std::string id = Workloads()[0]["id"].dump();
  EXPECT_EQ(Atp("forget").exit_code, 2);
  EXPECT_EQ(Atp("forget 99").exit_code, 1);
  EXPECT_EQ(Atp("forget " + id).exit_code, 0);
  EXPECT_EQ(Workloads().size(), 1u);
}

TEST_F(Command, AFileOfSettingsIsCheckedAndOptionsComeFirst) {
  const std::string file = folder_ / "conf", check = " --check-config --config " + file;
  std::ofstream(file) << "store-workloads = 5\nstore-bytes = 1MB\nsocket = /from/file\n";
  const Finished good = Shell(ATP_DAEMON_FILE " --socket /from/option" + check);
  EXPECT_EQ(good.exit_code, 0) << good.text;
  EXPECT_NE(good.text.find("store-bytes=1048576"), std::string::npos) << good.text;
  EXPECT_NE(good.text.find("socket=\"/from/option\""), std::string::npos) << good.text;
  std::ofstream(file) << "colour = red\n";
  const Finished bad = Shell(ATP_DAEMON_FILE + check);
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_NE(bad.text.find("colour"), std::string::npos) << bad.text;
}

// As in a container: other process numbers, another root, the socket's folder mounted there.
TEST_F(Command, AProcessInANamespaceOfItsOwnFindsTheSameWorkloads) {
  const std::string in = "unshare --user --map-root-user --mount --pid --fork ";
  if (Shell(in + "true").exit_code != 0) {
    GTEST_SKIP() << "this kernel makes no namespaces for this user: NOT tested";
  }
  DaemonProcess daemon(folder_);
  const std::string mounted = folder_ / "in-the-container";
  std::filesystem::create_directories(mounted);
  const Finished finished = Shell(in + "sh -c 'mount --bind " + folder_.string() + " " + mounted +
                                  " && test $$ -lt 9 && " + "ATP_SOCKET=" + mounted +
                                  "/atpd.sock " ATP_COMMAND " status --json'");
  ASSERT_EQ(finished.exit_code, 0) << finished.text;
  EXPECT_EQ(nlohmann::json::parse(finished.text)["daemon"]["workloads"].size(), 2u);
}

TEST_F(Command, AnotherUserIsKeptOutAndOneOfTheGroupSeesNothingOfOthers) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can be somebody else: NOT tested";
  const std::string other = "setpriv --reuid 65534 --regid 65534 --clear-groups ";
  const std::filesystem::path folder = "/tmp/atp-users." + std::to_string(getpid());
  std::filesystem::create_directories(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  std::filesystem::copy_file(ATP_COMMAND, folder / "atp");
  std::filesystem::copy_file(folder_ / "atpd.db", folder / "atpd.db");
  const std::string status = other + "env ATP_SOCKET=" + (folder / "atpd.sock").string() + " " +
                             (folder / "atp").string() + " status --json";
  {
    DaemonProcess daemon(folder);
    const Finished finished = Shell(status);
    EXPECT_TRUE(nlohmann::json::parse(finished.text)["daemon"].is_null()) << finished.text;
  }
  {
    DaemonProcess daemon(folder, {"--group", "nogroup"});
    const Finished finished = Shell(status);
    EXPECT_TRUE(nlohmann::json::parse(finished.text)["daemon"]["workloads"].empty())
        << finished.text;
    EXPECT_EQ(Shell(other + "env ATP_SOCKET=" + daemon.socket() + " " + (folder / "atp").string() +
                    " forget 1")
                  .exit_code,
              1);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace atp::daemon
