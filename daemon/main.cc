// SPDX-License-Identifier: Apache-2.0
// atpd: remembers what the shim has learned of each program, for its next run (docs/daemon.md).
#include <signal.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <exception>
#include <filesystem>
#include <string>

#include "daemon/log.h"
#include "daemon/server.h"
#include "daemon/service.h"
#include "daemon/store.h"
#include "protocol/message.h"

namespace atp::daemon {
namespace {

struct Options {
  std::string socket, store, group;
};

std::string DefaultSocket() {
  // The machine's daemon is root's.
  if (geteuid() == 0 && getenv("ATP_SOCKET") == nullptr) return protocol::kMachineSocket;
  const auto paths = protocol::SocketPaths();
  return paths.empty() ? "" : paths.front();
}

std::string DefaultStore() {
  if (geteuid() == 0) return "/var/lib/atp/atpd.db";
  if (const char* state = getenv("XDG_STATE_HOME"); state != nullptr && state[0] == '/') {
    return std::string(state) + "/atp/atpd.db";
  }
  const char* home = getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.local/state/atp/atpd.db" : "";
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
    Store store(options.store, StoreLimits{});
    Service service(&store);
    Server server(options.socket, options.group, &service);
    Log(kLogInfo, "listens at %s; %llu workloads are remembered in %s", options.socket.c_str(),
        static_cast<unsigned long long>(store.workloads()), options.store.c_str());
    server.Run(ends);
    return 0;
  } catch (const std::exception& error) {
    Log(kLogError, "%s", error.what());
    return 1;
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Remembers what the shim has learned of each program, for its next run.", "atpd");
  Options options{DefaultSocket(), DefaultStore(), ""};
  bool foreground = true;
  app.set_version_flag("--version", "atpd " ATP_VERSION);
  app.add_flag("--foreground", foreground, "Do not leave the terminal; there is no other way");
  app.add_option("--socket", options.socket, "Where to listen")->capture_default_str();
  app.add_option("--store", options.store, "File of what is remembered")->capture_default_str();
  app.add_option("--group", options.group, "Group that may use the socket besides its owner");
  app.footer("Exit code: 0 asked to end; 1 cannot serve; 2 usage.");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return Serve(options);
}

}  // namespace
}  // namespace atp::daemon

int main(int argc, char** argv) { return atp::daemon::Main(argc, argv); }
