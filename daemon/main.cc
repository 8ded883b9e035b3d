// SPDX-License-Identifier: Apache-2.0
// atpd: remembers what the shim has learned of each program, for its next run (docs/daemon.md).
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/server.h"
#include "daemon/service.h"
#include "daemon/settings.h"
#include "daemon/status.h"
#include "daemon/store.h"
#include "daemon/tuning.h"
#include "protocol/message.h"

namespace atp::daemon {
namespace {

// A descriptor that can be read when the process is asked to end, or to read its settings again.
int Signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Of the daemon that listens, for those who have no other command at hand.
int DumpStats(const Settings& settings) {
  protocol::Message message;
  message.kind = protocol::MessageKind::kStatus;
  const protocol::Fd socket = protocol::Connect(settings.socket);
  bool closed = false;
  constexpr int kMilliseconds = 10000;
  std::vector<uint8_t> json;
  if (socket && protocol::Send(socket, message) && AwaitReadable(socket, kMilliseconds)) {
    const auto received = protocol::Receive(socket, &closed);
    if (received && received->bodies.size() == 1 &&
        ReadBody(received->bodies[0], protocol::kMostLearnedBytes, &json)) {
      std::cout.write(reinterpret_cast<const char*>(json.data()),
                      static_cast<std::streamsize>(json.size()));
      return 0;
    }
  }
  Log(kLogError, "no atpd answers at %s", settings.socket.c_str());
  return 1;
}

class Daemon {
 public:
  Daemon(const Settings& settings, std::vector<std::string> arguments)
      : settings_(settings), arguments_(std::move(arguments)) {
    book_.SetLimits(settings_.job_limits);
    server_.Also(-1, [this] { tuning_.Tick(Tuning::Clock::now()); });
    if (settings_.metrics.empty()) return;
    metrics_.emplace(settings_.metrics, [this] { return Figures(); });
    server_.Also(metrics_->descriptor(), [this] { metrics_->Serve(); });
  }

  // Until it is asked to end.
  void Serve() {
    const int signals = Signals();
    Log(kLogInfo, "listens at %s; %llu workloads are remembered in %s", settings_.socket.c_str(),
        static_cast<unsigned long long>(store_.workloads()), settings_.store.c_str());
    while (true) {
      server_.Run(signals);
      signalfd_siginfo info{};
      if (read(signals, &info, sizeof info) != sizeof info) continue;
      if (info.ssi_signo != SIGHUP) return;
      Reload();
    }
  }

 private:
  std::string Figures() {
    const Server::Counters& c = server_.counters();
    return MetricsText(
        &store_, {c.accepted, c.served, c.dropped, c.unanswered, service_.refused(),
                  server_.connections(), tuning_.counters().searches, tuning_.counters().offered});
  }

  // What is bound to files and addresses needs a new start.
  void Reload() {
    Settings now;
    if (ReadSettings(arguments_, getenv, &now, nullptr) != -1) {
      Log(kLogError, "the settings are bad: those from before hold");
      return;
    }
    store_.SetLimits(now.limits);
    tuning_.Set(now.tuning);
    book_.SetLimits(now.job_limits);
    const auto bound = [](const Settings& s) {
      return std::tie(s.socket, s.store, s.group, s.metrics);
    };
    const bool stays = bound(now) == bound(settings_);
    settings_.limits = now.limits;
    settings_.tuning = now.tuning;
    Log(kLogInfo, "the settings were read again%s",
        stays ? "" : "; socket, store, group and metrics change with the next start only");
  }

  Settings settings_;
  const std::vector<std::string> arguments_;
  Store store_{settings_.store, settings_.limits};
  Tuning tuning_{&store_, settings_.tuning};
  ShareBook book_;
  Service service_{&store_, &tuning_, &book_};
  Server server_{settings_.socket, settings_.group, &service_};
  std::optional<Metrics> metrics_;
};

int Serve(const Settings& settings, const std::vector<std::string>& arguments) {
  if (settings.socket.empty()) {
    Log(kLogError, "ATP_SOCKET is off: name a socket by --socket");
    return 2;
  }
  if (settings.store.empty()) {
    Log(kLogError, "there is no home folder: name a file by --store");
    return 2;
  }
  try {
    Daemon(settings, arguments).Serve();
    return 0;
  } catch (const std::exception& error) {
    Log(kLogError, "%s", error.what());
    return 1;
  }
}

int Main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  Settings settings;
  std::string shown;
  if (const int code = ReadSettings(arguments, getenv, &settings, &shown); code >= 0) return code;
  if (settings.check_config) {
    std::cout << shown;
    return 0;
  }
  return settings.dump_stats ? DumpStats(settings) : Serve(settings, arguments);
}

}  // namespace
}  // namespace atp::daemon

int main(int argc, char** argv) { return atp::daemon::Main(argc, argv); }
