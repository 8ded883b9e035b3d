// SPDX-License-Identifier: Apache-2.0
// The library as a guest: unnoticed where there is no CUDA, and in processes that fork, exec,
// thread and end in every way.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <csignal>
#include <fstream>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

const std::string kFolder = ATP_GUEST_FOLDER;
const std::string kShim = ATP_SHIM_FILE;

Finished Guest(const std::string& way, const std::vector<std::string>& preloaded,
               Environment more = {}) {
  Environment environment = {{"LD_LIBRARY_PATH", ATP_NOOP_DRIVER_FOLDER},
                             {"LD_PRELOAD", Preload(preloaded)}};
  environment.merge(more);
  return RunChild({kFolder + "/guest", way}, environment);
}

void ExpectSame(const Finished& native, const Finished& with) {
  EXPECT_EQ(with.exit_code, native.exit_code);
  EXPECT_EQ(with.signal, native.signal);
  EXPECT_EQ(with.out, native.out);
  EXPECT_EQ(with.err, native.err);
}

class InertTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(InertTest, AProcessWithoutCudaDoesNotNotice) {
  if (access(GetParam()[0].c_str(), X_OK) != 0) GTEST_SKIP() << GetParam()[0] << " is not here";
  const Finished native = RunChild(GetParam(), {{"LD_PRELOAD", Preload({})}});
  ExpectSame(native, RunChild(GetParam(), {{"LD_PRELOAD", Preload({kShim})}}));
  ExpectSame(native, RunChild(GetParam(), {{"LD_PRELOAD", Preload({kShim})},
                                           {"LD_BIND_NOW", "1"},
                                           {"ATP_POLICY", "nonsense"}}));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, InertTest,
    testing::Values(std::vector<std::string>{"/bin/true"},
                    std::vector<std::string>{"/bin/sh", "-c", "echo out; echo err >&2; exit 7"},
                    std::vector<std::string>{"/bin/sh", "-c",
                                             "grep Threads /proc/self/status; ls /proc/self/fd"},
                    std::vector<std::string>{
                        "/usr/bin/python3", "-c",
                        "import ctypes, threading; print(ctypes.CDLL(None).abs(-3))"},
                    std::vector<std::string>{kFolder + "/static_program"}));

class GuestTest : public testing::TestWithParam<const char*> {};

TEST_P(GuestTest, WorksAsWithoutUs) {
  const Finished native = Guest(GetParam(), {});
  EXPECT_FALSE(native.out.empty());
  ExpectSame(native, Guest(GetParam(), {kShim}));
  ExpectSame(native, Guest(GetParam(), {kShim}, {{"ATP_POLICY", "managed"}}));
  ExpectSame(native, Guest(GetParam(), {kShim}, {{"ATP_BUDGET", "8MiB"}, {"ATP_LOG", "error"}}));
}

INSTANTIATE_TEST_SUITE_P(Ways, GuestTest,
                         testing::Values("use", "fork-before", "fork-after-lookups", "fork-after",
                                         "fork-inside", "exec", "threads", "dying-threads",
                                         "exit-in-thread", "static-destructor", "at-once",
                                         "dlclose", "daemon", "workers"));

TEST(Guest, AnotherHookLibraryWorksInBothOrders) {
  const std::string other = kFolder + "/libother_hook.so";
  const Finished native = Guest("use", {other});
  ExpectSame(native, Guest("use", {kShim, other}));
  ExpectSame(native, Guest("use", {other, kShim}));
}

TEST(Guest, ALibraryThatTheDriverInjectsWorksAsWithoutUs) {
  const Environment injected = {{"CUDA_INJECTION64_PATH", kFolder + "/libinjection.so"}};
  for (const char* way : {"use", "threads", "fork-before", "exec", "exit-in-thread"}) {
    const Finished native = Guest(way, {}, injected);
    EXPECT_NE(native.out.find("injected: driver 13000, launches found"), std::string::npos);
    EXPECT_NE(native.out.find("300 calls worked"), std::string::npos) << native.out;
    ExpectSame(native, Guest(way, {kShim}, injected));
  }
}

TEST(Guest, ACheckersLauncherWorksInBothOrders) {
  const std::string launcher = kFolder + "/liblauncher.so";
  for (const char* way : {"use", "exec", "dlclose"}) {
    const Finished native = Guest(way, {launcher});
    EXPECT_NE(native.out.find("injected"), std::string::npos) << native.out;
    ExpectSame(native, Guest(way, {kShim, launcher}));
    ExpectSame(native, Guest(way, {launcher, kShim}));
  }
}

// The loader takes nothing from the environment of a process with raised privileges.
TEST(Guest, AProgramWithRaisedPrivilegesDoesNotNotice) {
  char folder[] = "/tmp/atp-setuid-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string copy = std::string(folder) + "/guest";
  const auto remove = [&] {
    unlink(copy.c_str());
    rmdir(folder);
  };
  std::ofstream(copy, std::ios::binary)
      << std::ifstream(kFolder + "/guest", std::ios::binary).rdbuf();
  constexpr uid_t kNobody = 65534;
  const bool raised = chmod(folder, 0755) == 0 && chown(copy.c_str(), kNobody, kNobody) == 0 &&
                      chmod(copy.c_str(), 04755) == 0;
  const Environment with = {{"LD_PRELOAD", Preload({kShim})}};
  const Finished native = RunChild({copy, "loaded"}, {{"LD_PRELOAD", Preload({})}});
  const Finished run = RunChild({copy, "loaded"}, with);
  chmod(copy.c_str(), 0755);
  const Finished ordinary = RunChild({copy, "loaded"}, with);
  remove();
  EXPECT_EQ(ordinary.err, "the shim is loaded\n") << "the test sees nothing";
  if (!raised || run.err == ordinary.err) GTEST_SKIP() << "privileges cannot be raised here";
  ExpectSame(native, run);
}

// As conda has one: a library that we needed ourselves would come first, and be the system's.
TEST(Guest, AProcessWithACxxLibraryOfItsOwnKeepsThatOne) {
  const Finished usual = Guest("loaded", {});
  const std::string library = usual.out.substr(0, usual.out.find('\n'));
  char folder[] = "/tmp/atp-cxx-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string copy = std::string(folder) + "/libstdc++.so.6";
  std::ofstream(copy, std::ios::binary) << std::ifstream(library, std::ios::binary).rdbuf();
  const Environment own = {{"LD_LIBRARY_PATH", std::string(folder) + ":" ATP_NOOP_DRIVER_FOLDER}};
  const auto run = [&](const char* way, const std::vector<std::string>& preloaded) {
    Environment environment = own;
    environment["LD_PRELOAD"] = Preload(preloaded);
    return RunChild({kFolder + "/guest", way}, environment);
  };
  const Finished loaded = run("loaded", {kShim}), native = run("use", {}),
                 used = run("use", {kShim});
  unlink(copy.c_str());
  rmdir(folder);
  EXPECT_EQ(loaded.out, copy + "\n");
  EXPECT_EQ(loaded.err, "the shim is loaded\n");
  ExpectSame(native, used);
}

TEST(Guest, UnderADebuggerItRunsAndItsFramesAreNamed) {
  const std::string gdb = "/usr/bin/gdb";
  if (access(gdb.c_str(), X_OK) != 0) GTEST_SKIP() << "there is no gdb here";
  if (*ATP_SANITIZER_PRELOAD != '\0') GTEST_SKIP() << "the sanitizer disturbs the debugger";
  const auto debugged = [&](const std::string& preload) {
    const std::vector<std::string> steps = {
        "set startup-with-shell off",
        "set breakpoint pending on",
        "set environment LD_LIBRARY_PATH " ATP_NOOP_DRIVER_FOLDER,
        "set environment LD_PRELOAD " + preload,
        "break cuMemAllocManaged",
        "run",
        "backtrace",
        "delete",
        "continue"};
    std::vector<std::string> command = {gdb, "-nx", "-batch"};
    for (const std::string& step : steps) command.insert(command.end(), {"-ex", step});
    command.insert(command.end(), {"--args", kFolder + "/guest", "use"});
    return RunChild(command, {});
  };
  const Finished native = debugged("");
  if (native.out.find("uses: 1") == std::string::npos) {
    GTEST_SKIP() << "gdb cannot run a program here: " << native.err;
  }
  const Finished run = debugged(kShim);
  EXPECT_NE(run.out.find("uses: 1"), std::string::npos) << run.out << run.err;
  EXPECT_NE(run.out.find("exited normally"), std::string::npos) << run.out << run.err;
  EXPECT_NE(run.out.find("cuMemAlloc_v2"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("libatpshim.so"), std::string::npos) << run.out;
}

TEST(Guest, ThreeHundredProcessesAtOnceAllWork) {
  std::vector<pid_t> children;
  fflush(stdout);
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("LD_LIBRARY_PATH", ATP_NOOP_DRIVER_FOLDER, 1);
      setenv("LD_PRELOAD", Preload({kShim}).c_str(), 1);
      if (freopen("/dev/null", "w", stdout) == nullptr) _exit(8);
      execl((kFolder + "/guest").c_str(), "guest", "use", nullptr);
      _exit(9);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

// Other libraries that replace what every program uses, in front of us and behind us.
class AllocatorTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(AllocatorTest, AnotherAllocatorWorksInBothOrders) {
  std::string allocator;
  for (const std::string& path : GetParam()) {
    if (access(path.c_str(), R_OK) == 0) allocator = path;
  }
  if (allocator.empty()) GTEST_SKIP() << GetParam()[0] << " is not installed";
  if (*ATP_SANITIZER_PRELOAD != '\0') GTEST_SKIP() << "the sanitizer has an allocator of its own";
  for (const char* way : {"use", "threads", "fork-inside", "exec", "static-destructor"}) {
    const Finished native = Guest(way, {allocator});
    ExpectSame(native, Guest(way, {kShim, allocator}));
    ExpectSame(native, Guest(way, {allocator, kShim}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Allocators, AllocatorTest,
    testing::Values(std::vector<std::string>{"/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"},
                    std::vector<std::string>{"/usr/lib/x86_64-linux-gnu/libtcmalloc_minimal.so.4",
                                             "/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4"}));

// The sanitizer's runtime insists on being first, also in a program that was built without it. Not
// "fork-inside": its dlopen takes a lock that a child finds taken for ever, with us and without.
TEST(Guest, TheAddressSanitizerMayStandInFrontOfUs) {
  const std::string runtime = "/usr/lib/x86_64-linux-gnu/libasan.so.8";
  if (access(runtime.c_str(), R_OK) != 0) GTEST_SKIP() << runtime << " is not installed";
  if (*ATP_SANITIZER_PRELOAD != '\0') GTEST_SKIP() << "every test of this build is like that";
  for (const char* way : {"use", "threads", "fork-before", "exec", "dlclose", "exit-in-thread"}) {
    const Finished native = Guest(way, {runtime});
    EXPECT_FALSE(native.out.empty()) << native.err;
    ExpectSame(native, Guest(way, {runtime, kShim}));
  }
}

// A process may be killed anywhere: here by a timer that nobody handles, after times that are
// spread over its life. Whoever comes after it must not notice.
TEST(Guest, ProcessesThatAreKilledAnywhereLeaveNothingBehind) {
  constexpr int kProcesses = 1000, kAtOnce = 16;
  std::vector<pid_t> running;
  fflush(stdout);
  int killed = 0, ended = 0;
  const auto reap = [&] {
    int status = 0;
    waitpid(running.front(), &status, 0);
    running.erase(running.begin());
    (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM ? killed : ended) += 1;
    EXPECT_TRUE(WIFSIGNALED(status) ? WTERMSIG(status) == SIGALRM : WEXITSTATUS(status) == 0);
  };
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      setenv("LD_LIBRARY_PATH", ATP_NOOP_DRIVER_FOLDER, 1);
      setenv("LD_PRELOAD", Preload({kShim}).c_str(), 1);
      setenv("ATP_BUDGET", "8MiB", 1);
      setenv("ATP_LOG", "off", 1);
      if (freopen("/dev/null", "w", stdout) == nullptr) _exit(8);
      // Survives exec; its signal ends the process at once.
      const itimerval timer = {{0, 0}, {0, 1 + i * 7919 % 20000}};
      setitimer(ITIMER_REAL, &timer, nullptr);
      execl((kFolder + "/guest").c_str(), "guest", "threads", nullptr);
      _exit(9);
    }
    running.push_back(child);
    if (running.size() == kAtOnce) reap();
  }
  while (!running.empty()) reap();
  EXPECT_GT(killed, kProcesses / 10);
  ExpectSame(Guest("use", {}), Guest("use", {kShim}));
}

TEST(Guest, ABadSettingGivesOneClearLineAndTheDefault) {
  const Finished run = Guest("use", {kShim}, {{"ATP_BUDGET", "plenty"}});
  EXPECT_EQ(run.out, "uses: 1\n");
  EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
  for (const char* part : {"ATP_BUDGET", "plenty", "16GiB", "default"}) {
    EXPECT_NE(run.err.find(part), std::string::npos) << part << " in " << run.err;
  }
}

TEST(Guest, ABudgetLargerThanTheCardIsSaidAndNotUsed) {
  const Finished run = Guest("use", {kShim}, {{"ATP_BUDGET", "4TiB"}});
  EXPECT_EQ(run.out, "uses: 1\n");
  EXPECT_NE(run.err.find("4.0 TiB"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("1.0 TiB"), std::string::npos) << run.err;
}

TEST(Guest, WithoutADriverTheProgramSeesWhatItWouldSee) {
  const Environment bare = {{"LD_PRELOAD", Preload({kShim})}};
  const Finished run = RunChild({kFolder + "/guest", "use"}, bare);
  ExpectSame(RunChild({kFolder + "/guest", "use"}, {{"LD_PRELOAD", Preload({})}}), run);
}

}  // namespace
}  // namespace atp::preload
