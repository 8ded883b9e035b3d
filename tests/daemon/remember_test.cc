// SPDX-License-Identifier: Apache-2.0
// A second run begins with what the first one has learned: unmodified programs under the real
// library, on the simulated machine in virtual time, with a real daemon beside them.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <fstream>
#include <functional>
#include <regex>
#include <thread>

#include "daemon/statement.h"
#include "daemon/store.h"
#include "tests/daemon/daemon_process.h"
#include "tests/preload/child.h"

namespace atp::daemon {
namespace {

using protocol::Learned;

struct Outcome {
  preload::Finished finished;
  std::vector<double> iteration_ms;
  std::string results;  // everything printed, but for the times
  bool discarded_live_data = true;
};

// A transformer of 54 MiB, on half of that, or as the options say.
Outcome Train(const std::string& socket, preload::Environment environment = {},
              const std::vector<std::string>& options = {"--sequence", "16"}) {
  static int runs = 0;
  const std::string stats = testing::TempDir() + "remember." + std::to_string(getpid()) + "." +
                            std::to_string(++runs) + ".json";
  environment.insert({{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                      {"LD_PRELOAD", preload::Preload({ATP_SHIM_FILE})},
                      {"ATP_SIM_GPU", "tiny"},
                      {"ATP_SIM_MEMORY", "28MiB"},
                      {"ATP_SIM_STATS", stats},
                      {"ATP_LOG", "info"},
                      {"ATP_SOCKET", socket}});
  Outcome outcome;
  std::vector<std::string> command = {
      ATP_EXAMPLES "/train_transformer", "--layers", "1", "--width", "512", "--iterations", "8"};
  command.insert(command.end(), options.begin(), options.end());
  outcome.finished = preload::RunChild(command, environment);
  static const std::regex time("ms ([0-9.]+)");
  const std::string& out = outcome.finished.out;
  for (std::sregex_iterator it(out.begin(), out.end(), time), end; it != end; ++it) {
    outcome.iteration_ms.push_back(std::stod((*it)[1]));
  }
  outcome.results = std::regex_replace(out, time, "");
  std::ifstream in(stats);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  outcome.discarded_live_data =
      !std::regex_search(text, std::regex("\"discard_violations\": *0\\b"));
  unlink(stats.c_str());
  return outcome;
}

int PlannedPeriods(const Outcome& outcome) {
  std::smatch planned;
  const std::string& log = outcome.finished.err;
  return std::regex_search(log, planned, std::regex("([0-9]+) planned")) ? std::stoi(planned[1])
                                                                         : -1;
}

double FirstThree(const Outcome& outcome) {
  const std::vector<double>& ms = outcome.iteration_ms;
  return ms.size() < 3 ? 0 : ms[0] + ms[1] + ms[2];
}

// One first run for all tests of a process, with the store that it has left.
class Remember : public testing::Test {
 protected:
  static const std::filesystem::path& Base() {
    static const struct Folder {
      const std::filesystem::path path =
          testing::TempDir() + "remember." + std::to_string(getpid());
      ~Folder() { std::filesystem::remove_all(path); }
    } folder;
    return folder.path;
  }
  static const Outcome& FirstRun() {
    static const Outcome first = [] {
      std::filesystem::remove_all(Base());
      DaemonProcess daemon(Base() / "first");
      return Train(daemon.socket());
    }();
    return first;
  }
  // A folder with a copy of that store.
  static std::filesystem::path StoreOfFirstRun(const std::string& name) {
    FirstRun();
    std::filesystem::create_directories(Base() / name);
    std::filesystem::copy_file(Base() / "first" / "atpd.db", Base() / name / "atpd.db",
                               std::filesystem::copy_options::overwrite_existing);
    return Base() / name;
  }
  static void Change(const std::filesystem::path& folder, std::function<void(Learned*)> change) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open((folder / "atpd.db").c_str(), &database), SQLITE_OK);
    int changed = 0;
    {
      Statement rows(database, "SELECT id, learned FROM workload");
      while (rows.Row()) {
        Learned learned;
        std::string error;
        ASSERT_TRUE(protocol::Read(rows.Blob(1), &learned, &error)) << error;
        change(&learned);
        Statement update(database, "UPDATE workload SET learned = ? WHERE id = ?");
        update.Bind(1, protocol::Write(learned));
        update.Bind(2, rows.Integer(0));
        update.Row();
        changed += update.done();
      }
    }
    EXPECT_GT(changed, 0);
    sqlite3_close(database);
  }
};

TEST_F(Remember, TheSecondRunIsPlannedFromItsFirstIterationOn) {
  const Outcome& first = FirstRun();
  DaemonProcess daemon(StoreOfFirstRun("second"));
  const Outcome second = Train(daemon.socket());
  ASSERT_EQ(second.finished.exit_code, 0) << second.finished.err;
  EXPECT_EQ(second.results, first.results);
  EXPECT_LT(PlannedPeriods(first), 7);
  EXPECT_EQ(PlannedPeriods(second), 7) << second.finished.err;  // of 8: the first is counted apart
  EXPECT_GE(FirstThree(first), 1.5 * FirstThree(second));
  EXPECT_LE(second.iteration_ms.back(), 1.005 * first.iteration_ms.back());
}

// The same kernels in the same order on other sizes: one lap of them is enough.
TEST_F(Remember, AnotherBatchOfAKnownProgramIsPlannedFromItsSecondIterationOn) {
  const preload::Environment card = {{"ATP_SIM_MEMORY", "32MiB"}};
  const std::vector<std::string> four = {"--sequence", "8", "--batch", "4"},
                                 five = {"--sequence", "8", "--batch", "5"};
  DaemonProcess daemon(Base() / "batch");
  Train(daemon.socket(), card, four);
  const Outcome alone = Train("off", card, five), near = Train(daemon.socket(), card, five);
  ASSERT_EQ(near.finished.exit_code, 0) << near.finished.err;
  EXPECT_EQ(near.results, alone.results);
  EXPECT_LT(PlannedPeriods(alone), 6);
  EXPECT_EQ(PlannedPeriods(near), 6) << near.finished.err;  // of 8: the first two are counted apart
  EXPECT_LT(FirstThree(near), FirstThree(alone));
}

// The store as if atpd had found other choices.
void Offer(const protocol::Tuning& candidate, Learned* learned) {
  learned->candidate = candidate;
  learned->trial = protocol::TrialState::kOffered;
}

// What the program has told at its end.
Learned Told(const std::filesystem::path& folder) {
  Store store(folder / "atpd.db", {});
  Learned learned;
  std::string error;
  const auto bytes = store.Get(geteuid(), store.List(geteuid()).at(0).id);
  EXPECT_TRUE(bytes && protocol::Read(*bytes, &learned, &error)) << error;
  return learned;
}

const std::vector<std::string> kLonger = {"--sequence", "16", "--iterations", "14"};

// Room that nobody uses has to move in and out.
TEST_F(Remember, OtherChoicesAreTriedOnTheLiveJobAndGoneWhereTheyAreSlower) {
  const auto folder = StoreOfFirstRun("slower");
  Change(folder, [](Learned* learned) { Offer({8u << 20, 0, 0}, learned); });
  Outcome run;
  {
    DaemonProcess daemon(folder, {"--tune", "off"});
    run = Train(daemon.socket(), {}, kLonger);
  }
  ASSERT_EQ(run.finished.exit_code, 0) << run.finished.err;
  EXPECT_EQ(run.results.substr(0, FirstRun().results.rfind("iter 8")),
            FirstRun().results.substr(0, FirstRun().results.rfind("iter 8")));
  const Learned told = Told(folder);
  ASSERT_EQ(told.rejected.size(), 1u);
  EXPECT_EQ(told.rejected[0].head_room_bytes, 8u << 20);
  EXPECT_EQ(told.tuning.head_room_bytes, 4u << 20);  // the shim's own
  EXPECT_LE(run.iteration_ms.back(), 1.005 * FirstRun().iteration_ms.back());
}

TEST_F(Remember, VirtualTimeDoesNotHangOnTheDaemonsSpeed) {
  DaemonProcess one(StoreOfFirstRun("one")), two(StoreOfFirstRun("two"));
  const Outcome a = Train(one.socket()), b = Train(two.socket(), {{"ATP_SIM_THREADS", "1"}});
  EXPECT_EQ(a.iteration_ms, b.iteration_ms);
}

TEST_F(Remember, ThreadsThatMoveGiveTheSameResults) {
  DaemonProcess daemon(StoreOfFirstRun("threads"));
  const Outcome run = Train(daemon.socket(), {{"ATP_EXECUTOR", "threads"}});
  EXPECT_EQ(run.finished.exit_code, 0) << run.finished.err;
  EXPECT_EQ(run.results, FirstRun().results);
  EXPECT_FALSE(run.discarded_live_data);
}

// What a store says may be wrong in every way: it costs time, never data.
struct Wrong {
  const char* name;
  std::function<void(protocol::LearnedPhase*)> change;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongStore : public Remember, public testing::WithParamInterface<Wrong> {};

TEST_P(WrongStore, ChangesNoResult) {
  const std::filesystem::path folder = StoreOfFirstRun(GetParam().name);
  Change(folder, [&](Learned* learned) {
    for (protocol::LearnedPhase& phase : learned->phases) GetParam().change(&phase);
  });
  DaemonProcess daemon(folder);
  const Outcome run = Train(daemon.socket());
  EXPECT_EQ(run.finished.exit_code, 0) << run.finished.err;
  EXPECT_EQ(run.results, FirstRun().results);
  EXPECT_FALSE(run.discarded_live_data);
}

std::vector<uint32_t> All(const protocol::LearnedPhase& phase) {
  std::vector<uint32_t> all(phase.tensors.size());
  for (uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Stores, WrongStore,
    testing::Values(
        // Dead after every launch: nothing is ever read, all of it is written anew by each.
        Wrong{"EverythingIsDead",
              [](protocol::LearnedPhase* phase) {
                for (auto& launch : phase->launches) {
                  launch.writes.insert(launch.writes.end(), launch.reads.begin(),
                                       launch.reads.end());
                  launch.reads.clear();
                }
              }},
        Wrong{"NothingIsEverWritten",
              [](protocol::LearnedPhase* phase) {
                for (auto& launch : phase->launches) {
                  launch.reads.insert(launch.reads.end(), launch.writes.begin(),
                                      launch.writes.end());
                  launch.writes.clear();
                }
              }},
        Wrong{"LaunchesTouchWhatOthersTouch",
              [](protocol::LearnedPhase* phase) {
                std::vector<protocol::LearnedLaunch> old = phase->launches;
                for (size_t i = 0; i < old.size(); ++i) {
                  phase->launches[i].reads = old[old.size() - 1 - i].reads;
                  phase->launches[i].writes = old[old.size() - 1 - i].writes;
                }
              }},
        Wrong{"EachLaunchTouchesEverythingAtOnce",
              [](protocol::LearnedPhase* phase) {
                for (auto& launch : phase->launches) launch.reads = All(*phase);
              }},
        Wrong{"TimesAreNonsense",
              [](protocol::LearnedPhase* phase) {
                for (size_t i = 0; i < phase->launches.size(); ++i) {
                  phase->launches[i].seconds = i % 2 == 0 ? 1e300 : 1e-300;
                }
                phase->plain_seconds = 1e-9;
              }}),
    [](const auto& instance) { return instance.param.name; });

TEST_F(Remember, ADaemonThatIsKilledAgainAndAgainChangesNoResult) {
  FirstRun();
  const std::filesystem::path folder = StoreOfFirstRun("killed");
  std::atomic<bool> over{false};
  std::thread killer([&] {
    while (!over) DaemonProcess(folder).End(SIGKILL);
  });
  const Outcome run = Train(folder / "atpd.sock");
  over = true;
  killer.join();
  EXPECT_EQ(run.finished.exit_code, 0) << run.finished.err;
  EXPECT_EQ(run.results, FirstRun().results);
}

TEST_F(Remember, WithoutADaemonOrWithOneThatHangsTheProgramRunsAsBefore) {
  FirstRun();
  const Outcome without = Train("/nowhere/atpd.sock");
  DaemonProcess daemon(StoreOfFirstRun("stopped"));
  kill(daemon.pid(), SIGSTOP);
  const Outcome stopped = Train(daemon.socket());
  kill(daemon.pid(), SIGCONT);
  for (const Outcome* run : {&without, &stopped}) {
    EXPECT_EQ(run->finished.exit_code, 0) << run->finished.err;
    EXPECT_EQ(run->results, FirstRun().results);
    ASSERT_EQ(run->iteration_ms.size(), FirstRun().iteration_ms.size());
    // Not to the digit: beside a daemon launches are watched from the first one on, since another
    // job may come to the card.
    for (size_t i = 0; i < run->iteration_ms.size(); ++i) {
      const double first = FirstRun().iteration_ms[i];
      EXPECT_NEAR(run->iteration_ms[i], first, first / 200) << i;
    }
  }
  EXPECT_EQ(stopped.iteration_ms, without.iteration_ms);
}

}  // namespace
}  // namespace atp::daemon
