// SPDX-License-Identifier: Apache-2.0
// simcard: one simulated card for several programs (docs/sim.md, "One card, several programs").
#include <getopt.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "sim/card/card_server.h"

namespace atp::sim {
namespace {

constexpr const char* kUsage =
    "usage: simcard --socket FILE [--members N] [--timeline FILE]\n"
    "Holds a simulated card for programs with ATP_SIM_CARD=FILE in their environment.\n"
    "Nothing happens on it before N programs (default 2) are there; ends when all have left.\n"
    "Exit code: 0 all have left; 1 it cannot listen; 2 usage.\n";

int Listen(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return -1;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  unlink(path.c_str());
  const bool listens =
      listener >= 0 &&
      bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      listen(listener, SOMAXCONN) == 0;
  return listens ? listener : -1;
}

int Main(int argc, char** argv) {
  std::string path, timeline;
  long members = 2;
  static const option kOptions[] = {{"socket", required_argument, nullptr, 's'},
                                    {"members", required_argument, nullptr, 'm'},
                                    {"timeline", required_argument, nullptr, 't'},
                                    {"help", no_argument, nullptr, 'h'},
                                    {}};
  for (int c; (c = getopt_long(argc, argv, "", kOptions, nullptr)) != -1;) {
    if (c == 's') path = optarg;
    if (c == 'm') members = std::strtol(optarg, nullptr, 10);
    if (c == 't') timeline = optarg;
    if (c == 'h') return std::fputs(kUsage, stdout), 0;
    if (c == '?') return std::fputs(kUsage, stderr), 2;
  }
  if (path.empty() || members < 1 || members > kMostMembers || optind != argc) {
    return std::fputs(kUsage, stderr), 2;
  }
  const int listener = Listen(path);
  if (listener < 0) {
    std::perror(path.c_str());
    return 1;
  }
  std::fprintf(stderr, "simcard: listens at %s\n", path.c_str());
  CardServer server(static_cast<unsigned>(members), timeline);
  while (true) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) continue;
    std::thread([&server, socket, path] {
      server.Serve(socket);
      if (!server.Over()) return;
      unlink(path.c_str());
      std::_Exit(0);
    }).detach();
  }
}

}  // namespace
}  // namespace atp::sim

int main(int argc, char** argv) { return atp::sim::Main(argc, argv); }
