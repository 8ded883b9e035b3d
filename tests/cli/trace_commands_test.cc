// SPDX-License-Identifier: Apache-2.0
// The commands about traces, as they are called.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

namespace {

namespace fs = std::filesystem;

struct Result {
  int exit_code = -1;
  std::string output;
};

// 4 MiB are made in 10 us, wait for a launch that needs all memory, and are used again.
constexpr char kChain[] =
    R"({"format":"atp-trace","version":1,"name":"chain","source":"test","device_bytes":8388608,)"
    R"("h2d_bytes_per_s":1e9,"d2h_bytes_per_s":1e9}
{"tensor":0,"bytes":2097152,"kind":"weight","global":true}
{"tensor":1,"bytes":4194304,"kind":"activation","global":false}
{"tensor":2,"bytes":6291456,"kind":"activation","global":false}
{"launch":0,"name":"make","us":10,"reads":[0],"writes":[1]}
{"launch":1,"name":"busy","us":100,"reads":[],"writes":[2]}
{"launch":2,"name":"use","us":100,"reads":[1],"writes":[]}
)";

class TraceCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/atp_trace_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    trace_ = Path("trace.jsonl");
    ASSERT_EQ(Atp("generate --kind attention --layers 6 --output " + trace_).exit_code, 0);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return (folder_ / name).string(); }

  // Only standard output; messages go to a file.
  Result Atp(const std::string& arguments) {
    Result result;
    const std::string command =
        std::string(ATP_COMMAND) + " " + arguments + " 2>" + Path("messages");
    FILE* pipe = popen(command.c_str(), "r");
    char buffer[4096];
    for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;)
      result.output.append(buffer, n);
    const int status = pclose(pipe);
    result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return result;
  }
  std::string Messages() const { return Read("messages"); }
  std::string Read(const std::string& name) const {
    std::ifstream file(Path(name), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(Path(name), std::ios::binary) << text;
  }

  fs::path folder_;
  std::string trace_;
};

TEST_F(TraceCommands, ConvertCutsTheLaunchesThatAreNamed) {
  Write(
      "run.jsonl",
      R"({"format":"atp-trace","version":1,"name":"n","source":"s","device_bytes":1048576,"h2d_bytes_per_s":1e9,"d2h_bytes_per_s":1e9}
{"alloc":1,"bytes":65536,"at":0,"device":0,"kind":"native"}
{"launch":0,"name":"a","signature":"01","us":10,"stream":0,"device":0,"touches":[[1,0,65536,"o"]]}
{"launch":1,"name":"b","signature":"02","us":20,"stream":0,"device":0,"touches":[[1,0,65536,"r"]]}
{"launch":2,"name":"c","signature":"03","us":40,"stream":0,"device":0,"touches":[[1,0,65536,"r"]]}
)");
  ASSERT_EQ(
      Atp("convert " + Path("run.jsonl") + " " + Path("cut.jsonl") + " --launches 1:3").exit_code,
      0)
      << Messages();
  const auto bound = nlohmann::json::parse(Atp("bound --json " + Path("cut.jsonl")).output);
  EXPECT_NEAR(bound["compute_s"].get<double>(), 60e-6, 1e-12);
  for (const char* wrong : {"1:4", "0:9"}) {
    EXPECT_EQ(Atp("convert " + Path("run.jsonl") + " " + Path("x.jsonl") + " --launches " + wrong)
                  .exit_code,
              3);
  }
  for (const char* wrong : {"2:2", "3", ":3", "1:", "a:b", "1:2x"}) {
    EXPECT_EQ(Atp("convert " + Path("run.jsonl") + " " + Path("x.jsonl") + " --launches " + wrong)
                  .exit_code,
              2)
        << wrong;
  }
}

TEST_F(TraceCommands, PlanPrintsItsFiguresAsOneObject) {
  const Result result = Atp("plan --json --memory 60% " + trace_);
  ASSERT_EQ(result.exit_code, 0) << Messages();
  const auto json = nlohmann::json::parse(result.output);
  for (const char* key : {"trace", "memory_bytes", "compute_s", "bound_any_s", "bound_closed_s",
                          "bound_safe_s", "bound_lp_s", "plan_s", "plan_over_bound",
                          "moved_h2d_bytes", "moved_d2h_bytes", "stall_s", "planning_ms"}) {
    EXPECT_TRUE(json.contains(key)) << key;
  }
  EXPECT_TRUE(json["bound_lp_s"].is_null());
  EXPECT_GE(json["plan_s"].get<double>(), json["bound_safe_s"].get<double>() * (1 - 1e-9));
}

TEST_F(TraceCommands, SeveralTracesGiveAList) {
  const Result result = Atp("bound --json " + trace_ + " " + trace_);
  EXPECT_EQ(nlohmann::json::parse(result.output).size(), 2u);
}

TEST_F(TraceCommands, TheLinearProgramIsNoLowerThanTheLaunches) {
  const auto json = nlohmann::json::parse(Atp("bound --json --lp --memory 60% " + trace_).output);
  EXPECT_GE(json["bound_lp_s"].get<double>(), json["compute_s"].get<double>() * (1 - 1e-9));
}

TEST_F(TraceCommands, PlanWritesAScheduleAndAPlot) {
  const Result result = Atp("plan --memory 60% --schedule " + Path("s.json") + " --plot " +
                            Path("p.svg") + " " + trace_);
  ASSERT_EQ(result.exit_code, 0) << Messages();
  EXPECT_TRUE(nlohmann::json::parse(Read("s.json")).contains("moves"));
  EXPECT_TRUE(Read("p.svg").starts_with("<svg"));
}

TEST_F(TraceCommands, ReplayComparesPolicies) {
  const Result result = Atp("replay --json --memory 60% --policy plan,stock,ideal " + trace_);
  ASSERT_EQ(result.exit_code, 0) << Messages();
  const auto json = nlohmann::json::parse(result.output);
  ASSERT_EQ(json.size(), 3u);
  EXPECT_LT(json[0]["period_s"].get<double>(), json[1]["period_s"].get<double>());
  EXPECT_LE(json[2]["period_s"].get<double>(), json[0]["period_s"].get<double>() * (1 + 1e-9));
}

TEST_F(TraceCommands, SizesAndPoliciesMayStandBeforeTheTrace) {
  const Result result = Atp("replay --json --policy plan,stock --memory 50%,60% " + trace_);
  ASSERT_EQ(result.exit_code, 0) << Messages();
  EXPECT_EQ(nlohmann::json::parse(result.output).size(), 4u);
  EXPECT_EQ(Atp("plan --memory 50% " + trace_).exit_code, 0) << Messages();
}

TEST_F(TraceCommands, PlanWritesWhatARuntimeHasToDo) {
  ASSERT_EQ(
      Atp("plan --readmostly --memory 50% --actions " + Path("do.json") + " " + trace_).exit_code,
      0)
      << Messages();
  const auto file = nlohmann::json::parse(Read("do.json"));
  std::set<std::string> kinds;
  for (const auto& action : file["actions"]) kinds.insert(action["do"].get<std::string>());
  for (const char* kind : {"evict", "prefetch", "touch", "discard"}) {
    EXPECT_TRUE(kinds.contains(kind)) << kind;
  }
}

TEST_F(TraceCommands, PlanSaysWhatToRunAgain) {
  Write("chain.jsonl", kChain);
  const Result result = Atp("plan --json --recompute all " + Path("chain.jsonl"));
  ASSERT_EQ(result.exit_code, 0) << Messages();
  const auto json = nlohmann::json::parse(result.output);
  const auto& again = json["recompute"];
  EXPECT_LT(again["plan_s"].get<double>(), json["plan_s"].get<double>());
  EXPECT_EQ(again["dropped_bytes"], 4 << 20);
  EXPECT_DOUBLE_EQ(again["rerun_s"].get<double>(), 1e-5);
  ASSERT_EQ(again["reruns"].size(), 1u);
  EXPECT_EQ(again["reruns"][0]["launch"], 0);
  EXPECT_EQ(again["reruns"][0]["before"], 2);
  EXPECT_EQ(again["reruns"][0]["restores"][0], "1");
  const Result none = Atp("plan --json --recompute elementwise " + Path("chain.jsonl"));
  EXPECT_EQ(nlohmann::json::parse(none.output)["recompute"]["reruns"].size(), 0u);
  EXPECT_FALSE(nlohmann::json::parse(Atp("plan --json " + trace_).output).contains("recompute"));
}

TEST_F(TraceCommands, ARecomputingPlanHasNoSchedule) {
  EXPECT_EQ(Atp("plan --recompute all --schedule " + Path("s.json") + " " + trace_).exit_code, 2);
  EXPECT_NE(Messages().find("--recompute"), std::string::npos) << Messages();
  EXPECT_EQ(Atp("plan --recompute some " + trace_).exit_code, 2);
}

TEST_F(TraceCommands, BoundSaysWhatRecomputationCannotBeat) {
  Write("chain.jsonl", kChain);
  const Result result = Atp("bound --json --recompute all " + Path("chain.jsonl"));
  ASSERT_EQ(result.exit_code, 0) << Messages();
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_LT(json["bound_recompute_s"].get<double>(), json["bound_safe_s"].get<double>());
  EXPECT_GE(json["bound_recompute_s"].get<double>(), json["compute_s"].get<double>());
  EXPECT_FALSE(
      nlohmann::json::parse(Atp("bound --json " + trace_).output).contains("bound_recompute_s"));
}

TEST_F(TraceCommands, ModelPrintsACurveAndItsKnee) {
  const Result result = Atp("model --json --points 4 " + trace_);
  ASSERT_EQ(result.exit_code, 0) << Messages();
  const auto json = nlohmann::json::parse(result.output);
  EXPECT_EQ(json["points"].size(), 4u);
  EXPECT_EQ(json["recompute"], "modelled, not executed");
}

TEST_F(TraceCommands, ABinaryTraceConvertsBackWithoutLoss) {
  ASSERT_EQ(Atp("convert " + trace_ + " " + Path("t.atp")).exit_code, 0) << Messages();
  ASSERT_EQ(Atp("convert " + Path("t.atp") + " " + Path("back.jsonl")).exit_code, 0) << Messages();
  // Reading turns microseconds into seconds, so that the last digit may differ from the first
  // file's.
  ASSERT_EQ(Atp("convert " + trace_ + " " + Path("direct.jsonl")).exit_code, 0) << Messages();
  EXPECT_EQ(Read("back.jsonl"), Read("direct.jsonl"));
  EXPECT_EQ(Atp("bound --json " + Path("t.atp")).output, Atp("bound --json " + trace_).output);
}

TEST_F(TraceCommands, AWholeRunIsPlannedByItsLastPeriod) {
  std::string run =
      R"({"format":"atp-trace","version":1,"name":"run","source":"test","device_bytes":8388608,)"
      R"("h2d_bytes_per_s":1e9,"d2h_bytes_per_s":1e9})"
      "\n";
  for (int id = 0; id < 3; ++id) {
    run += R"({"alloc":)" + std::to_string(id) +
           R"(,"bytes":4194304,"at":0,"device":0,"kind":"managed"})" + "\n";
  }
  for (int k = 0; k < 12; ++k) {
    const std::string id = std::to_string(k % 3);
    run += R"({"launch":)" + std::to_string(k) + R"(,"name":"k)" + id + R"(","signature":"a)" + id +
           R"(","us":100,"stream":0,"device":0,"touches":[[)" + id + R"(,0,4194304,"r"]]})" + "\n";
  }
  Write("run.jsonl", run);
  const Result result = Atp("plan --json " + Path("run.jsonl"));
  ASSERT_EQ(result.exit_code, 0) << Messages();
  EXPECT_NEAR(nlohmann::json::parse(result.output)["compute_s"].get<double>(), 3e-4, 1e-9);
}

TEST_F(TraceCommands, AViewerGetsASliceForEachLaunch) {
  ASSERT_EQ(Atp("convert " + trace_ + " " + Path("t.chrome.json")).exit_code, 0) << Messages();
  EXPECT_GT(nlohmann::json::parse(Read("t.chrome.json"))["traceEvents"].size(), 20u);
}

TEST_F(TraceCommands, AFileThatIsNoTraceHasItsOwnExitCode) {
  Write("bad.jsonl", "this is no trace\n");
  EXPECT_EQ(Atp("plan " + Path("bad.jsonl")).exit_code, 3);
  EXPECT_NE(Messages().find("bad.jsonl"), std::string::npos) << Messages();
  EXPECT_EQ(Atp("plan " + Path("absent.jsonl")).exit_code, 3);
}

TEST_F(TraceCommands, ATruncatedBinaryTraceSaysWhereItEnds) {
  ASSERT_EQ(Atp("convert " + trace_ + " " + Path("t.atp")).exit_code, 0);
  const std::string bytes = Read("t.atp");
  Write("cut.atp", bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(Atp("plan " + Path("cut.atp")).exit_code, 3);
  EXPECT_NE(Messages().find("chunk"), std::string::npos) << Messages();
}

TEST_F(TraceCommands, ALaunchThatCannotFitHasItsOwnExitCode) {
  EXPECT_EQ(Atp("plan --memory 1MiB " + trace_).exit_code, 4);
  EXPECT_NE(Messages().find("largest launch"), std::string::npos) << Messages();
}

TEST_F(TraceCommands, AWrongOptionIsAUsageError) {
  EXPECT_EQ(Atp("plan --memory much " + trace_).exit_code, 2);
  EXPECT_EQ(Atp("replay --policy nobody " + trace_).exit_code, 2);
  EXPECT_EQ(Atp("generate --kind nothing").exit_code, 2);
}

TEST_F(TraceCommands, AFileThatCannotBeWrittenHasItsOwnExitCode) {
  EXPECT_EQ(Atp("convert " + trace_ + " " + Path("no/such/folder.atp")).exit_code, 5);
}

}  // namespace
