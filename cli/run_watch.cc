// SPDX-License-Identifier: Apache-2.0
#include "cli/run_watch.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <string>

#include "cli/error.h"
#include "cli/run.h"
#include "cli/run_records.h"
#include "report/analysis.h"
#include "report/words.h"

namespace atp::cli {
namespace {

namespace fs = std::filesystem;

class PrivateFolder {
 public:
  PrivateFolder() {
    std::string name = RecordFolder() / "atp-run-XXXXXX";
    if (mkdtemp(name.data()) == nullptr) {
      throw CommandError(kExitOwnFailure, name + ": " + std::strerror(errno));
    }
    path_ = name;
  }
  ~PrivateFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// What has been seen of all processes of the run.
class Progress {
 public:
  // True when there is news.
  bool Look(const fs::path& folder) {
    bool news = false;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      try {
        const protocol::RunRecord run = ReadRecord(entry.path());
        for (const protocol::DeviceRun& device : run.devices) {
          news |= Take(run.header.pid, device);
        }
      } catch (const CommandError&) {
        continue;  // just being made, or gone
      }
    }
    return news;
  }
  void Say() const {
    static const bool terminal = isatty(STDERR_FILENO) != 0;
    std::string line;
    for (const auto& [key, seen] : lines_) line += (line.empty() ? "atp: " : " | ") + seen.text;
    if (!line.empty()) std::cerr << (terminal ? "\r\033[K" : "") << line << (terminal ? "" : "\n");
  }
  void End() const {
    if (isatty(STDERR_FILENO)) std::cerr << "\n";
    if (lines_.empty()) {
      std::cerr << "atp: memory never had to move, or the program did not use the shim: no "
                   "iterations were watched\n";
    }
  }

 private:
  struct Seen {
    uint64_t rows = 0, snapshots = 0;
    double bound_safe = 0;
    std::string text;
  };
  bool Take(int pid, const protocol::DeviceRun& device) {
    Seen& seen = lines_[{pid, device.facts.ordinal}];
    const bool news = seen.text.empty() || device.facts.rows != seen.rows;
    if (device.measured && device.facts.snapshots != seen.snapshots) {
      seen.bound_safe = report::BoundsOf(*device.measured).safe;
    }
    seen.rows = device.facts.rows;
    seen.snapshots = device.facts.snapshots;
    seen.text = ProgressOf(device, seen.bound_safe);
    return news;
  }
  std::map<std::pair<int, int>, Seen> lines_;  // by process and device
};

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (int s : {SIGCHLD, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGUSR1, SIGUSR2}) sigaddset(&set, s);
  return set;
}

// What somebody sent to us is meant for the program; what a terminal sends, it gets as well.
void PassOn(const siginfo_t& info, pid_t child) {
  if (info.si_code == SI_USER || info.si_code == SI_QUEUE || info.si_code == SI_TKILL) {
    kill(child, info.si_signo);
  }
}

int WaitFor(pid_t child, const sigset_t& watched, const std::function<void()>& each_second) {
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    siginfo_t info{};
    const timespec second{1, 0};
    const int got = sigtimedwait(&watched, &info, &second);
    if (got > 0 && got != SIGCHLD) PassOn(info, child);
    if (got < 0 && errno == EAGAIN) each_second();
  }
  return status;
}

void MakeMissingPages(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    try {
      const protocol::RunRecord run = ReadRecord(entry.path());
      if (run.header.ended == 0) WritePageOf(run);
    } catch (const CommandError& error) {
      std::cerr << "atp run: " << error.what() << "\n";
    }
  }
}

// As the program ended; the core, if any, is the program's.
int EndLike(int status) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  const int number = WTERMSIG(status);
  signal(number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, number);
  sigprocmask(SIG_UNBLOCK, &one, nullptr);
  raise(number);
  return 128 + number;
}

}  // namespace

std::string ProgressOf(const protocol::DeviceRun& run, double bound_safe) {
  const auto bytes = [](uint64_t n) { return report::SayBytes(static_cast<double>(n)); };
  std::string text = report::SayCount(run.facts.rows, "iteration");
  const double seconds = report::TypicalSeconds(run);
  if (seconds > 0) {
    const protocol::RunRecordRow& last = run.rows.back();
    text += ", " + report::SayTimes(1 / seconds) + " /s, each " + bytes(last.in_bytes) +
            " in and " + bytes(last.out_bytes) + " out";
  }
  if (seconds > 0 && bound_safe > 0) {
    text += ", " + report::SayTimes(seconds / bound_safe) + " x bound_safe";
  }
  return text + (run.facts.off != 0 ? ", no hints any more" : "");
}

int RunWatched(bool progress, const std::function<void()>& program) {
  int status = 0;
  {
    const PrivateFolder folder;
    setenv("ATP_RECORD", folder.path().c_str(), 1);
    const sigset_t watched = Watched();
    sigset_t before;
    sigprocmask(SIG_BLOCK, &watched, &before);
    const pid_t child = fork();
    if (child < 0) throw CommandError(kExitOwnFailure, std::string("fork: ") + strerror(errno));
    if (child == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever kills us means the program
      try {
        program();
      } catch (const CommandError& error) {
        std::cerr << "atp run: " << error.what() << "\n";
        _exit(error.exit_code());
      }
      _exit(kExitOwnFailure);
    }
    Progress seen;
    status = WaitFor(child, watched, [&] {
      if (progress && seen.Look(folder.path())) seen.Say();
    });
    if (progress) {
      if (seen.Look(folder.path())) seen.Say();
      seen.End();
    }
    MakeMissingPages(folder.path());
  }
  return EndLike(status);
}

}  // namespace atp::cli
