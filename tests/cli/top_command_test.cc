// SPDX-License-Identifier: Apache-2.0
// atp top as it is called: without a terminal, and in one. The test itself is the running job: it
// keeps a record mapped, as the shim does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/protocol/sample_record.h"

namespace atp::cli {
namespace {

class Top : public testing::Test {
 protected:
  Top() : file_(testing::TempDir() + "atp-" + std::to_string(getpid()) + ".record") {
    const std::vector<char> bytes = protocol::SampleRecord();
    const int fd = open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    size_ = bytes.size();
    EXPECT_EQ(write(fd, bytes.data(), size_), static_cast<ssize_t>(size_));
    map_ = mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT_NE(map_, MAP_FAILED);
    close(fd);
    setenv("ATP_SOCKET", "off", 1);
  }
  ~Top() override {
    munmap(map_, size_);
    unlink(file_.c_str());
  }

 private:
  const std::string file_;
  size_t size_ = 0;
  void* map_ = nullptr;
};

std::string Shell(const std::string& command, int* exit_code) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "re");
  std::string text;
  char buffer[4096];
  for (size_t got; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
  const int status = pclose(pipe);
  *exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return text;
}

TEST_F(Top, WithoutATerminalItPrintsOnceAndEnds) {
  int code = -1;
  EXPECT_NE(Shell(ATP_COMMAND " top </dev/null", &code).find("./train --size 3"),
            std::string::npos);
  EXPECT_EQ(code, 0);
  const auto json = nlohmann::json::parse(Shell(ATP_COMMAND " top --json", &code));
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(json["daemon"].is_null());
  bool found = false;
  for (const auto& job : json["jobs"]) {
    if (job["pid"] != getpid()) continue;
    found = true;
    EXPECT_EQ(job["in_bytes"], 160 * protocol::kSampleMiB);
    EXPECT_EQ(job["note"], "allocation 13 is copied back from now on");
  }
  EXPECT_TRUE(found) << json;
  Shell(ATP_COMMAND " top --interval 0", &code);
  EXPECT_EQ(code, 2);
}

// In a terminal of so many columns, ended by `end`, which gets the terminal and the process.
struct Seen {
  std::string text;
  int status = 0;
  bool restored = false;
};
template <typename End>
Seen InTerminal(unsigned short columns, End end) {
  Seen seen;
  const winsize size{10, columns, 0, 0};
  int master = -1, slave = -1;
  EXPECT_EQ(openpty(&master, &slave, nullptr, nullptr, &size), 0);
  termios before{}, after{};
  tcgetattr(slave, &before);
  const pid_t child = fork();
  if (child == 0) {
    close(master);
    login_tty(slave);
    execl(ATP_COMMAND, "atp", "top", "--interval", "3600", nullptr);
    _exit(127);
  }
  char buffer[4096];
  const auto take = [&] {
    const ssize_t got = read(master, buffer, sizeof buffer);
    if (got > 0) seen.text.append(buffer, static_cast<size_t>(got));
    return got > 0;
  };
  while (seen.text.find("\033[J") == std::string::npos && take()) {  // it has drawn
  }
  end(master, child);
  waitpid(child, &seen.status, 0);
  for (pollfd more{master, POLLIN, 0}; poll(&more, 1, 0) == 1 && take();) {
  }
  tcgetattr(slave, &after);
  seen.restored = before.c_lflag == after.c_lflag && before.c_cc[VMIN] == after.c_cc[VMIN] &&
                  seen.text.ends_with("\033[?7h\033[?25h\033[?1049l");
  close(master);
  close(slave);
  return seen;
}

TEST_F(Top, ANarrowTerminalIsEnoughAndQGivesItBack) {
  const Seen seen =
      InTerminal(40, [](int terminal, pid_t) { EXPECT_EQ(write(terminal, "q", 1), 1); });
  EXPECT_TRUE(WIFEXITED(seen.status) && WEXITSTATUS(seen.status) == 0) << seen.status;
  EXPECT_TRUE(seen.restored) << seen.text;
  EXPECT_NE(seen.text.find("job"), std::string::npos) << seen.text;
}

TEST_F(Top, ASignalThatEndsItGivesTheTerminalBackFirst) {
  const Seen seen = InTerminal(100, [](int, pid_t child) { kill(child, SIGTERM); });
  EXPECT_TRUE(WIFEXITED(seen.status) && WEXITSTATUS(seen.status) == 128 + SIGTERM) << seen.status;
  EXPECT_TRUE(seen.restored) << seen.text;
}

}  // namespace
}  // namespace atp::cli
