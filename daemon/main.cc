// SPDX-License-Identifier: Apache-2.0
// atpd: remembers what the shim has learned of each program, for its next run (docs/daemon.md).
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/server.h"
#include "daemon/service.h"
#include "daemon/status.h"
#include "daemon/store.h"
#include "protocol/message.h"

namespace atp::daemon {
namespace {

struct Options {
  std::string socket, store, group, metrics;
  StoreLimits limits;
  bool foreground = true, check_config = false, dump_stats = false;
};

std::string DefaultSocket() {
  // The machine's daemon is root's.
  if (geteuid() == 0 && getenv("ATP_SOCKET") == nullptr) return protocol::kMachineSocket;
  const auto paths = protocol::SocketPaths();
  return paths.empty() ? "" : paths.front();
}

// `variable` of the XDG base directories, or its usual place in the home folder; empty: neither.
std::string XdgFolder(const char* variable, const char* usual) {
  const char* given = getenv(variable);
  if (given != nullptr && given[0] == '/') return given;
  const char* home = getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + usual : "";
}

std::string DefaultStore() {
  if (geteuid() == 0) return "/var/lib/atp/atpd.db";
  const std::string state = XdgFolder("XDG_STATE_HOME", "/.local/state");
  return state.empty() ? "" : state + "/atp/atpd.db";
}

std::string DefaultConfig() {
  const std::string own = XdgFolder("XDG_CONFIG_HOME", "/.config") + "/atp/atpd.conf";
  return geteuid() != 0 && std::filesystem::exists(own) ? own : "/etc/atp/atpd.conf";
}

// A descriptor that can be read when the process is asked to end.
int EndSignals() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  return signalfd(-1, &ends, SFD_CLOEXEC | SFD_NONBLOCK);
}

// Of the daemon that listens, for those who have no other command at hand.
int DumpStats(const Options& options) {
  protocol::Message message;
  message.kind = protocol::MessageKind::kStatus;
  const protocol::Fd socket = protocol::Connect(options.socket);
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
  Log(kLogError, "no atpd answers at %s", options.socket.c_str());
  return 1;
}

int Serve(const Options& options) {
  if (options.socket.empty()) {
    Log(kLogError, "ATP_SOCKET is off: name a socket by --socket");
    return 2;
  }
  if (options.store.empty()) {
    Log(kLogError, "there is no home folder: name a file by --store");
    return 2;
  }
  try {
    const int ends = EndSignals();
    Store store(options.store, options.limits);
    Service service(&store);
    Server server(options.socket, options.group, &service);
    std::optional<Metrics> metrics;
    if (!options.metrics.empty()) {
      metrics.emplace(options.metrics, [&] {
        const Server::Counters& c = server.counters();
        return MetricsText(&store, {c.accepted, c.served, c.dropped, c.unanswered,
                                    service.refused(), server.connections()});
      });
      server.Also(metrics->descriptor(), [&] { metrics->Serve(); });
    }
    Log(kLogInfo, "listens at %s; %llu workloads are remembered in %s", options.socket.c_str(),
        static_cast<unsigned long long>(store.workloads()), options.store.c_str());
    server.Run(ends);
    return 0;
  } catch (const std::exception& error) {
    Log(kLogError, "%s", error.what());
    return 1;
  }
}

// Options of the command are keys of the file: key = value, one a line.
void Describe(CLI::App* app, Options* options) {
  app->set_version_flag("--version", "atpd " ATP_VERSION)->configurable(false);
  app->set_config("--config", DefaultConfig(), "File of settings");
  app->allow_config_extras(CLI::config_extras_mode::error);
  app->add_flag("--foreground", options->foreground,
                "Do not leave the terminal; there is no other way")
      ->configurable(false);
  app->add_flag("--check-config", options->check_config,
                "Read the settings, say what they are, end")
      ->configurable(false);
  app->add_flag("--dump-stats", options->dump_stats, "Print the figures of the daemon that listens")
      ->configurable(false);
  app->add_option("--socket", options->socket, "Where to listen")->capture_default_str();
  app->add_option("--store", options->store, "File of what is remembered")->capture_default_str();
  app->add_option("--group", options->group, "Group that may use the socket besides its owner");
  app->add_option("--metrics", options->metrics,
                  "Address for Prometheus, 127.0.0.1:9464 (default: none)");
  app->add_option("--store-bytes", options->limits.bytes, "Most bytes to remember, of all users")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app->add_option("--store-workloads", options->limits.workloads, "Most workloads of one user")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->footer("Exit code: 0 asked to end, or done; 1 cannot serve; 2 usage, or a bad setting.");
}

int Main(int argc, char** argv) {
  CLI::App app("Remembers what the shim has learned of each program, for its next run.", "atpd");
  Options options;
  options.socket = DefaultSocket();
  options.store = DefaultStore();
  Describe(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (options.check_config) {
    std::cout << app.config_to_str(/*default_also=*/true);
    return 0;
  }
  return options.dump_stats ? DumpStats(options) : Serve(options);
}

}  // namespace
}  // namespace atp::daemon

int main(int argc, char** argv) { return atp::daemon::Main(argc, argv); }
