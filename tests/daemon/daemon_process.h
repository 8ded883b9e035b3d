// SPDX-License-Identifier: Apache-2.0
// An atpd of a test's own, in a folder of its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/preload/die_with_parent.h"

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
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      preload::DieWithParent(self);
      dup2(out[1], STDERR_FILENO);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(out[1]);
    reader_ = std::thread([this, from = out[0]] { Listen(from); });
    Await("listens at");
  }
  ~DaemonProcess() { End(SIGTERM); }
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  // The wait status.
  int End(int signal) {
    int status = 0;
    if (pid_ > 0) {
      kill(pid_, signal);
      waitpid(pid_, &status, 0);
    }
    pid_ = -1;
    if (reader_.joinable()) reader_.join();
    return status;
  }
  // Until it has said so, or ended.
  void Await(const std::string& words) {
    std::unique_lock lock(mutex_);
    heard_.wait(lock, [&] { return over_ || said_.find(words) != std::string::npos; });
  }
  pid_t pid() const { return pid_; }
  std::string said() const {  // so far
    std::lock_guard lock(mutex_);
    return said_;
  }
  std::string socket() const { return folder_ / "atpd.sock"; }
  std::string store() const { return folder_ / "atpd.db"; }

 private:
  // All the time: a daemon whose words nobody takes stands still when the pipe is full.
  void Listen(int from) {
    char buffer[4096];
    for (ssize_t got; (got = read(from, buffer, sizeof buffer)) > 0;) {
      std::lock_guard lock(mutex_);
      said_.append(buffer, static_cast<size_t>(got));
      heard_.notify_all();
    }
    close(from);
    std::lock_guard lock(mutex_);
    over_ = true;
    heard_.notify_all();
  }

  std::filesystem::path folder_;
  pid_t pid_ = -1;
  std::thread reader_;
  mutable std::mutex mutex_;
  std::condition_variable heard_;
  std::string said_;
  bool over_ = false;
};

}  // namespace atp::daemon
