// SPDX-License-Identifier: Apache-2.0
// The examples as a user runs them, on the simulated machine.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <regex>
#include <set>
#include <string>
#include <vector>

namespace {

struct Outcome {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

// Runs bin/examples/<command> with `environment` ("NAME=value ...") before it.
Outcome Execute(const std::string& environment, const std::string& command) {
  const std::string line = "LD_LIBRARY_PATH=" ATP_SIM_DIRECTORY " LD_PRELOAD=" ATP_SANITIZER_PRELOAD
                           " " +
                           environment + " " ATP_EXAMPLES_DIRECTORY "/" + command + " 2>&1";
  Outcome run;
  FILE* pipe = popen(line.c_str(), "r");
  if (!pipe) return run;
  char buffer[4096];
  while (const size_t bytes = fread(buffer, 1, sizeof(buffer), pipe)) {
    run.output.append(buffer, bytes);
  }
  const int status = pclose(pipe);
  run.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return run;
}

std::vector<std::string> All(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator i(text.begin(), text.end(), regex), end; i != end; ++i) {
    found.push_back((*i)[1]);
  }
  return found;
}

std::vector<double> Losses(const Outcome& run) {
  std::vector<double> losses;
  for (const auto& text : All(run.output, "loss (\\S+)")) losses.push_back(std::stod(text));
  return losses;
}

constexpr const char* kSmall =
    "train_transformer --layers 2 --width 64 --heads 4 --batch 2 --sequence 12 --iterations 4";

TEST(TrainTransformer, AgreesWithItsReferenceOnTheCpu) {
  const Outcome run = Execute("", std::string(kSmall) + " --check");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(All(run.output, "check: greatest relative error (\\S+)").size(), 1u) << run.output;
}

TEST(TrainTransformer, AgreesWithItsReferenceForShapesThatFillNoTile) {
  const Outcome run = Execute("",
                              "train_transformer --layers 1 --width 36 --heads 3 --batch 3 "
                              "--sequence 13 --iterations 2 --check --seed 5");
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST(TrainTransformer, Learns) {
  const Outcome run = Execute("",
                              "train_transformer --layers 2 --width 64 --heads 2 --batch 8 "
                              "--sequence 16 --iterations 25");
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const std::vector<double> losses = Losses(run);
  ASSERT_EQ(losses.size(), 25u);
  EXPECT_NEAR(losses.front(), 5.545, 0.1);  // ln 256: it knows nothing yet
  EXPECT_LT(losses.back(), 4.0);
}

TEST(TrainTransformer, GivesTheSameResultsAndTimesOnAnyNumberOfCores) {
  const Outcome one = Execute("ATP_SIM_THREADS=1", kSmall);
  const Outcome two = Execute("ATP_SIM_THREADS=2", kSmall);
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_EQ(All(one.output, "checksum (\\S+)").size(), 1u);
  EXPECT_EQ(one.output, two.output);
}

TEST(TrainTransformer, ResultsDependOnTheSeed) {
  const Outcome one = Execute("", std::string(kSmall) + " --seed 1");
  const Outcome two = Execute("", std::string(kSmall) + " --seed 2");
  EXPECT_NE(All(one.output, "checksum (\\S+)"), All(two.output, "checksum (\\S+)"));
}

TEST(TrainTransformer, SaysItselfThatMemoryRanOut) {
  const Outcome run =
      Execute("ATP_SIM_MEMORY=32MiB", "train_transformer --layers 4 --width 512 --iterations 1");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_NE(run.output.find("out of memory: "), std::string::npos) << run.output;
}

TEST(TrainTransformer, PrintsTheFootprintThatItsOptionsAskFor) {
  const Outcome run = Execute("", "train_transformer --layers 1 --width 128 --iterations 1");
  const auto bytes = All(run.output, "footprint (\\d+) bytes");
  ASSERT_EQ(bytes.size(), 1u) << run.output;
  const double weights = 16.0 * (12 * 128 * 128 + 512 * 128);  // docs/examples.md
  EXPECT_GT(std::stod(bytes[0]), weights);
  EXPECT_LT(std::stod(bytes[0]), weights * 1.3);
}

TEST(TrainTransformer, RefusesWrongOptionsByName) {
  const Outcome run = Execute("", "train_transformer --widht 64");
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_NE(run.output.find("--widht"), std::string::npos);
  EXPECT_EQ(Execute("", "train_transformer --width 65").exit_code, 4);
  EXPECT_EQ(Execute("", "train_transformer --layers many").exit_code, 4);
}

TEST(TrainTransformer, AgreesWithItsReferenceWhenEachIterationHasALengthOfItsOwn) {
  const Outcome run = Execute("",
                              "train_transformer --layers 1 --width 32 --heads 2 --batch 2 "
                              "--sequence 16 --buckets 4 --iterations 5 --check");
  EXPECT_EQ(run.exit_code, 0) << run.output;
}

TEST(TrainTransformer, MovesTheMomentsByHandAndLearnsTheSame) {
  const std::string all = All(Execute("", kSmall).output, "footprint (\\d+)")[0];
  const Outcome plain = Execute("", kSmall);
  // A sixth less than it needs.
  const std::string room = std::to_string(std::stol(all) * 5 / 6);
  for (const char* slots : {"1", "2", "4"}) {
    const Outcome run =
        Execute("", std::string(kSmall) + " --offload " + room + " --slots " + slots);
    EXPECT_EQ(run.exit_code, 0) << run.output;
    EXPECT_EQ(All(run.output, "loss (\\S+)"), All(plain.output, "loss (\\S+)"));
    EXPECT_EQ(All(run.output, "checksum (\\S+)"), All(plain.output, "checksum (\\S+)"));
    EXPECT_LE(std::stol(All(run.output, "footprint (\\d+)")[0]), std::stol(room));
  }
}

TEST(TrainTransformer, LearnsTheSameWhenParametersAreUpdatedInTheBackwardPass) {
  const std::string at_once = std::string(kSmall) + " --update-in-backward";
  const Outcome plain = Execute("", kSmall), run = Execute("", at_once);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(All(run.output, "loss (\\S+)"), All(plain.output, "loss (\\S+)"));
  EXPECT_EQ(All(run.output, "checksum (\\S+)"), All(plain.output, "checksum (\\S+)"));
  EXPECT_EQ(Execute("", at_once + " --check").exit_code, 0);
}

// Four processes on four cards, two of which are shown their cards as 3,1.
TEST(TrainDdp, TheRanksAgreeWithEachOtherAndWithOneReferenceOnTheCpu) {
  constexpr const char* kRanks =
      "train_ddp --layers 1 --width 64 --heads 4 --batch 2 --sequence 12 --iterations 3";
  const Outcome run = Execute("ATP_SIM_DEVICES=4", std::string(kRanks) + " --check");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(All(run.output, "weights of (\\d+) ranks equal"), std::vector<std::string>{"4"});
  EXPECT_EQ(All(run.output, "(check: )").size(), 1u) << run.output;
  EXPECT_EQ(All(run.output, "iter \\d+ .*ms (\\S+)").size(), 3u);
}

TEST(TrainDdp, ARankThatFailsEndsTheOthers) {
  const Outcome run = Execute("ATP_SIM_DEVICES=3", "train_ddp --width 64 --iterations 3");
  EXPECT_EQ(run.exit_code, 3) << run.output;
}

// The launcher is killed while its ranks train; they end by themselves.
TEST(TrainDdp, LeavesNothingBehindWhenItIsKilled) {
  const auto left = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp")) {
      const std::string name = entry.path().filename();
      if (name.starts_with("train_ddp")) names.insert(name);
    }
    return names;
  };
  const std::set<std::string> before = left();
  FILE* pipe = popen("echo $$; exec env ATP_SIM_DEVICES=4 LD_LIBRARY_PATH=" ATP_SIM_DIRECTORY
                     " LD_PRELOAD=" ATP_SANITIZER_PRELOAD " " ATP_EXAMPLES_DIRECTORY
                     "/train_ddp --layers 1 --width 64 --heads 4 --sequence 12 --iterations 8 2>&1",
                     "r");
  ASSERT_NE(pipe, nullptr);
  pid_t launcher = 0;
  std::string output;
  char line[4096];
  while (fgets(line, sizeof line, pipe) != nullptr) {
    if (launcher == 0) launcher = std::stoi(line);
    output += line;
    if (std::string(line).starts_with("iter 1 ")) kill(launcher, SIGKILL);
  }
  pclose(pipe);
  EXPECT_EQ(All(output, "iter (\\d+) ").size(), 8u) << output;
  EXPECT_EQ(left(), before);
}

// Each program compares itself with a reference of its own; a step must have been printed for each
// iteration, and the comparison must have happened.
struct Checked {
  const char* name;
  const char* command;
  size_t steps;
};
class ExampleCheck : public testing::TestWithParam<Checked> {};

TEST_P(ExampleCheck, AgreesWithItsReferenceOnTheCpu) {
  const Outcome run = Execute("", std::string(GetParam().command) + " --check");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(All(run.output, "(?:iter|token) \\d+ .*ms (\\S+)").size(), GetParam().steps)
      << run.output;
  EXPECT_EQ(All(run.output, "(check: )").size(), 1u) << run.output;
}

TEST_P(ExampleCheck, GivesTheSameResultsAndTimesOnAnyNumberOfCores) {
  const Outcome one = Execute("ATP_SIM_THREADS=1", GetParam().command);
  const Outcome two = Execute("ATP_SIM_THREADS=2", GetParam().command);
  ASSERT_EQ(one.exit_code, 0) << one.output;
  EXPECT_EQ(All(one.output, "checksum (\\S+)").size(), 1u);
  EXPECT_EQ(one.output, two.output);
}

TEST_P(ExampleCheck, ResultsDependOnTheSeed) {
  const std::string command = GetParam().command;
  EXPECT_NE(All(Execute("", command + " --seed 1").output, "checksum (\\S+)"),
            All(Execute("", command + " --seed 2").output, "checksum (\\S+)"));
}

INSTANTIATE_TEST_SUITE_P(
    Programs, ExampleCheck,
    testing::Values(
        Checked{"Vgg", "train_vgg --channels 2 --hidden 24 --classes 5 --batch 2 --iterations 2",
                2},
        Checked{"Lstm", "train_lstm --hidden 40 --layers 2 --batch 3 --sequence 7 --iterations 3",
                3},
        Checked{"Decode", "decode --layers 2 --width 48 --heads 4 --batch 3 --tokens 9", 9},
        Checked{"Prompt", "decode --layers 2 --width 48 --heads 4 --batch 3 --tokens 4 --prompt 7",
                4},
        Checked{"Experts", "decode --layers 2 --width 64 --experts 8 --batch 2 --tokens 10", 10},
        Checked{"Stencil", "stencil --slabs 3 --planes 3 --edge 17 --iterations 3", 3},
        Checked{"Kmeans",
                "kmeans --chunks 3 --points 500 --dimensions 7 --clusters 5 --iterations 3", 3},
        Checked{"Bfs", "bfs --parts 5 --vertices 1000 --degree 6 --iterations 3", 3}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(StreamSweep, GivesTheResultOfTheCpuInEveryPass) {
  const Outcome run = Execute("", "stream_sweep --layers 6 --width 256 --passes 3");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  const auto errors = All(run.output, "pass \\d+  error (\\S+)");
  ASSERT_EQ(errors.size(), 3u);
  for (const auto& error : errors) EXPECT_LT(std::stod(error), 1e-3);
}

TEST(WeightBuffer, GivesTheResultOfTheCpuInEveryPass) {
  const Outcome run = Execute("", "weight_buffer --layers 3 --width 64 --hidden 96 --passes 2");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_NE(run.output.find("in 30 tensors of one buffer"), std::string::npos) << run.output;
  const auto errors = All(run.output, "pass \\d+  error (\\S+)");
  ASSERT_EQ(errors.size(), 2u);
  for (const auto& error : errors) EXPECT_LT(std::stod(error), 1e-3);
}

TEST(StreamSweep, SaysItselfThatMemoryRanOut) {
  const Outcome run = Execute("ATP_SIM_MEMORY=32MiB", "stream_sweep --layers 40 --width 512");
  EXPECT_EQ(run.exit_code, 2) << run.output;
  EXPECT_NE(run.output.find("out of memory: "), std::string::npos) << run.output;
}

}  // namespace
