// SPDX-License-Identifier: Apache-2.0
// The command as it is called, with a fake shim and a fake driver beside it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Result {
  int status = 0;  // of waitpid
  std::string output;
  int exit_code() const { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }
};

class RunCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atp_run_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    prefix_ = name;
    for (const char* folder : {"bin", "lib/sim"}) fs::create_directories(prefix_ / folder);
    fs::copy(ATP_COMMAND, prefix_ / "bin/atp");
    fs::copy(FAKE_SHIM, prefix_ / "lib/libatpshim.so");
    fs::copy(FAKE_DRIVER, prefix_ / "lib/sim/libcuda.so.1");
  }
  void TearDown() override { fs::remove_all(prefix_); }

  // Standard output and error together. `arguments` are a shell's words.
  Result Atp(const std::string& arguments) {
    Result result;
    FILE* pipe =
        popen(("exec " + (prefix_ / "bin/atp").string() + " " + arguments + " 2>&1").c_str(), "r");
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      result.output.append(buffer, n);
    result.status = pclose(pipe);
    return result;
  }
  void ExpectError(int code, const std::string& arguments, const std::string& words) {
    const Result result = Atp(arguments);
    EXPECT_EQ(result.exit_code(), code) << arguments << "\n" << result.output;
    EXPECT_NE(result.output.find(words), std::string::npos) << arguments << "\n" << result.output;
  }
  fs::path prefix_;
};

TEST_F(RunCommand, TheVersionIsTheProjects) {
  EXPECT_EQ(Atp("--version").output, "atp " ATP_VERSION "\n");
}

TEST_F(RunCommand, TheProgramHasTheShimLoaded) {
  EXPECT_EQ(Atp("run -- sh -c 'echo $FAKE_SHIM_LOADED'").output, "yes\n");
}

TEST_F(RunCommand, TheExitCodeIsThePrograms) {
  EXPECT_EQ(Atp("run -- sh -c 'exit 42'").exit_code(), 42);
}

TEST_F(RunCommand, ASignalEndsTheProgramAsWithoutIt) {
  const Result result = Atp("run -- sh -c 'kill -TERM $$'");
  EXPECT_TRUE(WIFSIGNALED(result.status) && WTERMSIG(result.status) == SIGTERM);
}

TEST_F(RunCommand, TheProgramHasThePidOfTheCommand) {
  FILE* pipe = popen(
      ("echo $$; exec " + (prefix_ / "bin/atp").string() + " run -- sh -c 'echo $$'").c_str(), "r");
  int before = 0, in_program = 1;
  EXPECT_EQ(fscanf(pipe, "%d %d", &before, &in_program), 2);
  pclose(pipe);
  EXPECT_EQ(before, in_program);
}

TEST_F(RunCommand, ArgumentsReachTheProgramUntouched) {
  EXPECT_EQ(Atp("run -- echo --sim -- -x").output, "--sim -- -x\n");
  EXPECT_EQ(Atp("run echo -- --budget").output, "-- --budget\n");
}

TEST_F(RunCommand, OptionsReachTheProgramAsEnvironment) {
  EXPECT_EQ(Atp("run --sim tiny --sim-memory 64M --budget 50% --policy managed -- "
                "sh -c 'echo $ATP_SIM_GPU $ATP_SIM_MEMORY $ATP_BUDGET $ATP_POLICY'")
                .output,
            "tiny 64M 50% managed\n");
  setenv("ATP_WEIGHT", "9", 1);
  EXPECT_EQ(Atp("run --weight 2 --priority -1 --wait 30s -- "
                "sh -c 'echo $ATP_WEIGHT $ATP_PRIORITY $ATP_WAIT'")
                .output,
            "2 -1 30s\n");
  unsetenv("ATP_WEIGHT");
}

TEST_F(RunCommand, AProgramThatCannotStartHasTheUsualCodes) {
  ExpectError(127, "run -- /nonexistent/program", "/nonexistent/program");
  ExpectError(126, "run -- /", "Permission denied");
}

TEST_F(RunCommand, ErrorsOfItsOwnAre125) {
  ExpectError(125, "run", "no program given");
  ExpectError(125, "run --wrong -- true", "--wrong");
  ExpectError(125, "run --budget 1Q -- true", "'1Q'");
  ExpectError(125, "run --sim-memory 1G -- true", "--sim");
  ExpectError(125, "run --weight 0 -- true", "--weight");
  ExpectError(125, "run --weight 101 -- true", "--weight");
  ExpectError(125, "run --priority 101 -- true", "--priority");
  ExpectError(125, "run --priority high -- true", "--priority");
}

TEST_F(RunCommand, ABudgetLargerThanTheCardIsRefused) {
  ExpectError(125, "run --sim tiny --budget 2GiB -- true", "1 GiB");
  EXPECT_EQ(Atp("run --sim tiny --budget 1GiB -- true").exit_code(), 0);
  EXPECT_EQ(Atp("run --sim tiny --budget 0=1GiB,7=99GiB -- true").exit_code(), 0);
}

TEST_F(RunCommand, ASimulatedMachineThatDoesNotStartIsAnErrorOfItsOwn) {
  setenv("FAKE_CUINIT", "100", 1);
  ExpectError(125, "run --sim warp9 -- true", "'warp9'");
  unsetenv("FAKE_CUINIT");
  fs::remove(prefix_ / "lib/sim/libcuda.so.1");
  ExpectError(125, "run --sim tiny -- true", "no simulated driver");
}

TEST_F(RunCommand, RequireRefusesAProgramThatCannotBeServed) {
  EXPECT_EQ(Atp("run --sim tiny --require -- true").exit_code(), 0);
  ExpectError(125, "run --sim tiny --require --policy off -- true", "'off'");
  const std::string script = prefix_ / "script";
  std::ofstream(script) << "echo no interpreter named\n";
  fs::permissions(script, fs::perms::owner_all);
  ExpectError(125, "run --sim tiny --require -- " + script, script);
}

TEST_F(RunCommand, RequireRefusesAMachineWithoutADriver) {
  setenv("LD_LIBRARY_PATH", (prefix_ / "lib/sim").c_str(), 1);
  EXPECT_EQ(Atp("run --require -- true").exit_code(), 0);
  setenv("FAKE_CARDS", "0", 1);
  ExpectError(125, "run --require -- true", "no usable device");
  unsetenv("FAKE_CARDS");
  fs::copy_file(FAKE_SHIM, prefix_ / "lib/sim/libcuda.so.1", fs::copy_options::overwrite_existing);
  ExpectError(125, "run --require -- true", "no CUDA driver");
  unsetenv("LD_LIBRARY_PATH");
}

}  // namespace
