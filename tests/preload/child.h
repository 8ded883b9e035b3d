// SPDX-License-Identifier: Apache-2.0
// Runs a program with an environment of its own and collects what it printed. For tests of what the
// preload library does to a process.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>
#include <string>
#include <vector>

#include "tests/preload/die_with_parent.h"

namespace atp::preload {

struct Finished {
  int exit_code = -1;  // -1: killed by `signal`
  int signal = 0;
  std::string out, err;
};

using Environment = std::map<std::string, std::string>;

// The preload libraries in their order, with the sanitizer's runtime first where this build has
// one.
inline std::string Preload(const std::vector<std::string>& libraries) {
  std::string value = ATP_SANITIZER_PRELOAD;
  for (const std::string& library : libraries) {
    if (!value.empty()) value += ':';
    value += library;
  }
  return value;
}

inline Finished RunChild(const std::vector<std::string>& command, const Environment& environment) {
  int out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return {};
  const pid_t self = getpid(), child = fork();
  if (child == 0) {
    DieWithParent(self);
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    std::vector<char*> arguments, variables;
    for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    std::vector<std::string> pairs = {"PATH=/usr/bin:/bin", "ASAN_OPTIONS=detect_leaks=0"};
    // What a daemon of this machine remembers is none of a test's business.
    if (environment.count("ATP_SOCKET") == 0) pairs.push_back("ATP_SOCKET=off");
    for (const auto& [name, value] : environment) pairs.push_back(name + "=" + value);
    for (const std::string& pair : pairs) variables.push_back(const_cast<char*>(pair.c_str()));
    variables.push_back(nullptr);
    execve(arguments[0], arguments.data(), variables.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Finished finished;
  pollfd ends[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  std::string* texts[2] = {&finished.out, &finished.err};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    poll(ends, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (ends[i].fd < 0 || ends[i].revents == 0) continue;
      char buffer[65536];
      const ssize_t got = read(ends[i].fd, buffer, sizeof buffer);
      if (got > 0) {
        texts[i]->append(buffer, static_cast<size_t>(got));
      } else {
        close(ends[i].fd);
        ends[i].fd = -1;
      }
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status)) finished.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
  return finished;
}

}  // namespace atp::preload
