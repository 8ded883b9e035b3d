// SPDX-License-Identifier: Apache-2.0
// An atpd of a test's own, in a folder of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace atp::daemon {

class DaemonProcess {
 public:
  // Returns when it listens.
  explicit DaemonProcess(const std::filesystem::path& folder,
                         const std::vector<std::string>& options = {})
      : folder_(folder) {
    std::filesystem::create_directories(folder);
    std::vector<std::string> words = {ATP_DAEMON_FILE, "--foreground", "--socket",
                                      socket(),        "--store",      store()};
    words.insert(words.end(), options.begin(), options.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int out[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(out[1], STDERR_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(out[1]);
    err_ = out[0];
    Await("listens at");
  }
  ~DaemonProcess() { End(SIGTERM); }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // The wait status.
  int End(int signal) {
    int status = 0;
    if (pid_ <= 0) return status;
    kill(pid_, signal);
    waitpid(pid_, &status, 0);
    pid_ = -1;
    char buffer[4096];
    for (ssize_t got; (got = read(err_, buffer, sizeof buffer)) > 0;) {
      said_.append(buffer, static_cast<size_t>(got));
    }
    close(err_);
    return status;
  }
  // Until it has said so, or ended.
  void Await(const std::string& words) {
    char c;
    while (said_.find(words) == std::string::npos && read(err_, &c, 1) == 1) said_ += c;
  }
  pid_t pid() const { return pid_; }
  const std::string& said() const { return said_; }  // until it listened, or ended
  std::string socket() const { return folder_ / "atpd.sock"; }
  std::string store() const { return folder_ / "atpd.db"; }

 private:
  std::filesystem::path folder_;
  pid_t pid_ = -1;
  int err_ = -1;
  std::string said_;
};

}  // namespace atp::daemon
