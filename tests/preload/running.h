// SPDX-License-Identifier: Apache-2.0
// A program that is started and goes on until it is told (tests/preload/programs/host_memory.cc).
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>
#include <string>
#include <vector>

#include "tests/preload/simulated.h"

namespace atp::preload {

// A process with an open input, whose output is read line by line.
class Running {
 public:
  // `waits`: it is told to go on only at the end of its input, by the word "wait".
  Running(const std::vector<std::string>& command, const Environment& environment,
          bool waits = true) {
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    const pid_t self = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      DieWithParent(self);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
      std::vector<char*> words, pairs;
      std::vector<std::string> texts = {"ASAN_OPTIONS=detect_leaks=0"};
      if (environment.count("ATP_SOCKET") == 0) texts.push_back("ATP_SOCKET=off");
      for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
      for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
      for (const std::string& text : texts) pairs.push_back(const_cast<char*>(text.c_str()));
      if (waits) words.push_back(const_cast<char*>("wait"));
      words.push_back(nullptr);
      pairs.push_back(nullptr);
      execve(words[0], words.data(), pairs.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Running() {
    if (pid_ > 0) Kill();
    close(out_);
  }
  // Reads on until `text` has come, or the process has ended: false.
  bool Says(const std::string& text) {
    while (said_.find(text) == std::string::npos) {
      char buffer[4096];
      const ssize_t got = read(out_, buffer, sizeof buffer);
      if (got <= 0) return false;
      said_.append(buffer, static_cast<size_t>(got));
    }
    return true;
  }
  int Finish() {
    close(in_);
    Says("\nnothing that is ever said");
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  void Kill() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(in_);
    pid_ = 0;
  }
  const std::string& said() const { return said_; }
  pid_t pid() const { return pid_; }
  int HeldMiB() const {
    std::smatch found;
    return std::regex_search(said_, found, std::regex("holds ([0-9]+) MiB")) ? stoi(found[1]) : -1;
  }

 private:
  pid_t pid_ = 0;
  int in_ = -1, out_ = -1;
  std::string said_;
};

}  // namespace atp::preload
