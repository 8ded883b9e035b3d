// SPDX-License-Identifier: Apache-2.0
// What do many programs at once cost the daemon, and whoever watches them?
//   daemon_load [--clients 200] [--launches 10000] [--seconds 10] [--json]
// Each client is a process that does what a program under the shim does towards others: it keeps a
// record mapped and writes a row for each iteration of 40 launches, asks atpd once, and tells it
// what it has learned in the 4th, 8th, 16th ... iteration and at its end. Nothing is launched.
// Prints the share of a core that atpd used, what one look of `atp top` costs, and how many rows a
// reader misses who looks once a second (the record keeps the last 511).
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "protocol/learned.h"
#include "protocol/message.h"
#include "protocol/run_record.h"

namespace {

using namespace atp::protocol;
using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr uint64_t kLaunches = 40;  // in an iteration
constexpr auto kTick = std::chrono::milliseconds(50);

struct Shared {  // with the clients
  std::atomic<uint64_t> ready{0}, rows{0}, answered{0}, told{0}, refused{0};
  std::atomic<bool> begin{false}, end{false};
};

Learned LearnedOf(uint64_t client) {
  Learned learned;
  learned.fingerprint = {"Load", 1u << 30, 1u << 29, {1000 + client, 2000 + client}, {}};
  learned.fingerprint.allocations.assign(64, (2 + client) << 21);
  learned.command = "client " + std::to_string(client);
  learned.h2d = learned.d2h = 25e9;
  LearnedPhase phase;
  for (uint32_t i = 0; i < kLaunches; ++i) {
    phase.tensors.push_back({8u << 20, 0, 8u << 20, i});
    phase.launches.push_back({client * 1000 + i, i, 1e-4, {i}, {(i + 1) % 40}});
  }
  phase.best_seconds = 4e-3;
  learned.phases.push_back(phase);
  return learned;
}

bool Say(const std::string& socket, MessageKind kind, uint64_t job,
         const std::vector<uint8_t>& bytes, bool await) {
  const Fd connected = Connect(socket);
  Message message;
  message.kind = kind;
  message.job = job;
  const Fd bodies[] = {MakeBody(bytes)};
  if (!connected || !Send(connected, message, bodies)) return false;
  bool closed = false;
  return !await || (AwaitReadable(connected, 2000) && Receive(connected, &closed));
}

class Record {
 public:
  Record(const fs::path& folder, uint64_t client) {
    const fs::path file = folder / ("atp-" + std::to_string(getpid()) + ".record");
    const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    const uint64_t bytes = RunRecordDeviceAt(1);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) exit(1);
    void* map = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED) exit(1);
    close(fd);
    auto* header = static_cast<RunRecordHeader*>(map);
    memcpy(header->magic, kRunRecordMagic, sizeof header->magic);
    header->version = kRunRecordVersion;
    header->device_bytes = sizeof(RunRecordDevice);
    header->pid = getpid();
    snprintf(header->command, sizeof header->command, "client %d", static_cast<int>(client));
    device_ = reinterpret_cast<RunRecordDevice*>(static_cast<char*>(map) + RunRecordDeviceAt(0));
    strcpy(device_->name, "Load");
    device_->used = 1;
  }
  void Add() {
    RunRecordRow& row = device_->row[device_->rows % kRunRecordRows];
    row = {device_->rows, device_->rows + 1, 4e-3, 1, 0, 64u << 20, 64u << 20, 0};
    std::atomic_ref(device_->rows).store(device_->rows + 1, std::memory_order_release);
  }
  uint64_t rows() const { return device_->rows; }

 private:
  RunRecordDevice* device_ = nullptr;
};

[[noreturn]] void Client(uint64_t number, double launches, const fs::path& folder, Shared* shared) {
  const std::string socket = folder / "atpd.sock";
  Record record(folder, number);
  const Learned learned = LearnedOf(number);
  const std::vector<uint8_t> bytes = Write(learned), fingerprint = Write(learned.fingerprint);
  ++shared->ready;
  while (!shared->begin) std::this_thread::sleep_for(kTick);
  if (Say(socket, MessageKind::kAsk, number + 1, fingerprint, true)) ++shared->answered;
  const Clock::time_point began = Clock::now();
  uint64_t tell_at = 4;
  const auto tell = [&] {
    ++(Say(socket, MessageKind::kTell, number + 1, bytes, false) ? shared->told : shared->refused);
  };
  while (!shared->end) {
    std::this_thread::sleep_for(kTick);
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    while (static_cast<double>(record.rows() * kLaunches) < seconds * launches) {
      record.Add();
      if (record.rows() < tell_at) continue;
      tell_at *= 2;
      tell();
    }
  }
  tell();
  shared->rows += record.rows();
  _exit(0);
}

double ProcessSeconds(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(in, text);
  text = text.substr(text.rfind(')') + 2);
  unsigned long user = 0, system = 0;
  sscanf(text.c_str(), "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system);
  return static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

pid_t Start(const std::vector<std::string>& words, bool quiet) {
  const pid_t child = fork();
  if (child != 0) return child;
  if (quiet) (void)!freopen("/dev/null", "w", stdout);
  (void)!freopen("/dev/null", "w", stderr);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  _exit(127);
}

// Processor seconds of one look at all of them.
double LookSeconds(const std::string& socket) {
  const pid_t child = Start({ATP_COMMAND, "top", "--json", "--socket", socket}, true);
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  if (status != 0) return -1;
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

double Option(int count, char** arguments, const char* name, double otherwise) {
  for (int i = 1; i + 1 < count; ++i) {
    if (strcmp(arguments[i], name) == 0) return atof(arguments[i + 1]);
  }
  return otherwise;
}

}  // namespace

int main(int count, char** arguments) {
  const auto clients = static_cast<uint64_t>(Option(count, arguments, "--clients", 200));
  const double launches = Option(count, arguments, "--launches", 10000);
  const double seconds = Option(count, arguments, "--seconds", 10);
  const bool json = count > 1 && strcmp(arguments[count - 1], "--json") == 0;
  char name[] = "/tmp/daemon_load.XXXXXX";
  const fs::path folder = mkdtemp(name);
  const std::string socket = folder / "atpd.sock";
  const pid_t daemon = Start(
      {ATP_DAEMON_FILE, "--socket", socket, "--store", folder / "atpd.db", "--tune", "off"}, true);
  while (!Connect(socket)) std::this_thread::sleep_for(kTick);
  auto* shared =
      new (mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
          Shared;
  for (uint64_t i = 0; i < clients; ++i) {
    if (fork() == 0) Client(i, launches, folder, shared);
  }
  while (shared->ready < clients) std::this_thread::sleep_for(kTick);

  const double before = ProcessSeconds(daemon);
  const Clock::time_point began = Clock::now();
  shared->begin = true;
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 2));
  const double look = LookSeconds(socket);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds / 2));
  shared->end = true;
  for (uint64_t i = 0; i < clients; ++i) wait(nullptr);
  const double elapsed = std::chrono::duration<double>(Clock::now() - began).count();
  const double used = ProcessSeconds(daemon) - before;
  kill(daemon, SIGTERM);
  waitpid(daemon, nullptr, 0);
  fs::remove_all(folder);

  const double per_second = static_cast<double>(shared->rows) / elapsed / double(clients);
  const double missed = std::max(0.0, per_second - (kRunRecordRows - 1));
  const nlohmann::ordered_json result = {
      {"clients", clients},
      {"launches_per_s", static_cast<double>(shared->rows * kLaunches) / elapsed},
      {"answered", shared->answered.load()},
      {"told", shared->told.load()},
      {"given_up", shared->refused.load()},
      {"daemon_cores", used / elapsed},
      {"look_s", look},
      {"rows_missed_per_s", missed}};
  if (json) {
    printf("%s\n", result.dump(2).c_str());
  } else {
    for (const auto& [key, value] : result.items()) {
      printf("%-18s %s\n", key.c_str(), value.dump().c_str());
    }
  }
  return look < 0 ? 1 : 0;
}
