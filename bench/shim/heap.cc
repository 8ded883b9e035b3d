// SPDX-License-Identifier: Apache-2.0
// The shim's heap: what an allocation with its free costs while many others live, and how much
// memory it takes for what a program asks.
//   time       on a driver that does nothing, beside a plain first-fit list and the pool of the
//              simulated driver; one thread, and several with a stream each
//   footprint  bytes held from the driver at most / bytes that the program had at most, on streams
//              of requests recorded from examples, and on random ones
// The program runs itself once for each driver. --json prints one object; without it, tables.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "bench/shim/heaps.h"

namespace {

using namespace bench;  // NOLINT
using Json = nlohmann::ordered_json;
constexpr uint64_t kMiB = 1u << 20;

// --- time

// Nanoseconds for a free and an allocation, an old one for a new one, among a thousand that are
// spread over all that live, or (cold) among all of them, whose books are then in no cache. Best of
// several rounds, because other processes only ever add time. Null: memory was refused.
Json PairTime(Heap* heap, size_t live, uint64_t bytes, int rounds, bool cold = false) {
  constexpr int kCalls = 1000;
  std::vector<uint64_t> held(live);
  for (uint64_t& address : held) {
    if ((address = heap->Take(bytes)) != 0) continue;
    for (const uint64_t taken : held) {
      if (taken != 0) heap->Give(taken);
    }
    return nullptr;
  }
  double best = 1e30;
  size_t at = 0;
  for (int round = 0; round < rounds; ++round) {
    if (!cold) at = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < kCalls; ++call) {
      uint64_t& address = held[at = (at + 7919) % live];
      heap->Give(address);
      address = heap->Take(bytes);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    best = std::min(best, took.count() / kCalls);
  }
  for (const uint64_t address : held) heap->Give(address);
  return best;
}

// Several threads at the same time, each with a stream: the slowest one's.
Json ThreadsTime(const Driver& driver, int threads, size_t live, uint64_t bytes, int rounds) {
  std::vector<Json> ns(static_cast<size_t>(threads));
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      driver.Use();
      Ordered heap(driver);
      ns[static_cast<size_t>(t)] =
          PairTime(&heap, live / static_cast<size_t>(threads), bytes, rounds);
    });
  }
  for (std::thread& thread : running) thread.join();
  Json worst = 0.0;
  for (const Json& one : ns) {
    if (one.is_null()) return nullptr;
    if (one.get<double>() > worst.get<double>()) worst = one;
  }
  return worst;
}

// `all`: plain calls and several threads too.
Json MeasureTimes(bool all, int rounds) {
  const Driver driver;
  Json times;
  for (const auto& [name, bytes] : {std::pair("2 MiB", 2 * kMiB), std::pair("64 KiB", kMiB / 16)}) {
    for (const size_t live : {20000, 200000}) {
      Ordered ordered(driver);
      Plain plain(driver);
      Json& row = times[std::string(name) + ", " + std::to_string(live) + " live"];
      row["stream-ordered"] = PairTime(&ordered, live, bytes, rounds);
      row["cold"] = PairTime(&ordered, live, bytes, rounds, /*cold=*/true);
      if (!all) continue;
      row["plain"] = PairTime(&plain, live, bytes, rounds);
      for (const int threads : {2, 4}) {
        row[std::to_string(threads) + " threads"] =
            ThreadsTime(driver, threads, live, bytes, rounds);
      }
    }
  }
  return times;
}

// Each request looks at half of the blocks, so more of them would take minutes.
Json FirstFitTimes() {
  FirstFit heap;
  return {{"20000 live", PairTime(&heap, 20000, kMiB, 1)}};
}

// --- footprint

struct Request {
  uint64_t block;  // a number of the program's
  uint64_t bytes;  // 0: a free
};
using Stream = std::vector<Request>;

// "block bytes" a line, 0 bytes for a free.
Stream Read(const std::string& file) {
  std::ifstream in(file);
  Stream stream;
  for (Request r; in >> r.block >> r.bytes;) stream.push_back(r);
  if (stream.empty()) Fail("nothing recorded in " + file);
  return stream;
}

// Blocks of 4 KiB to 64 MiB, as many of a size as of twice the size; about 1500 live.
Stream Random(unsigned seed) {
  constexpr size_t kLive = 1500, kRequests = 60000;
  std::mt19937_64 random(seed);
  Stream stream;
  std::vector<uint64_t> live;
  uint64_t next = 0;
  while (stream.size() < kRequests) {
    if (live.size() < kLive && (live.empty() || random() % 100 < 55)) {
      const uint64_t unit = uint64_t{4096} << random() % 14;
      stream.push_back({next, unit + random() % unit / 512 * 512});
      live.push_back(next++);
    } else {
      std::swap(live[random() % live.size()], live.back());
      stream.push_back({live.back(), 0});
      live.pop_back();
    }
  }
  return stream;
}

Json Footprint(const Driver& driver, Heap* heap, const Stream& stream) {
  std::map<uint64_t, std::pair<uint64_t, uint64_t>> live;  // address, bytes
  uint64_t sum = 0, most = 0, held = 0;
  const uint64_t before = driver.mapped();
  for (const Request& r : stream) {
    if (r.bytes > 0) {
      const uint64_t address = heap->Take(r.bytes);
      if (address == 0) Fail("memory was refused");
      live[r.block] = {address, r.bytes};
      most = std::max(most, sum += r.bytes);
    } else {
      const auto block = live.find(r.block);
      heap->Give(block->second.first);
      sum -= block->second.second;
      live.erase(block);
    }
    held = std::max(held, driver.mapped() - before);
  }
  for (const auto& [number, block] : live) heap->Give(block.first);
  return {{"requests", stream.size()},
          {"largest_live_bytes", most},
          {"held_bytes", held},
          {"ratio", static_cast<double>(held) / static_cast<double>(most)}};
}

Json MeasureFootprint(const std::string& way, const std::string& recorded) {
  const Driver driver;
  if (driver.mapped == nullptr) Fail("not the driver that does nothing");
  const Stream stream = recorded.empty() ? Random(1) : Read(recorded);
  Plain plain(driver);
  Ordered ordered(driver);
  return Footprint(driver, way == "plain" ? static_cast<Heap*>(&plain) : &ordered, stream);
}

// --- the whole

std::string Directory() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
  path[std::max<ssize_t>(length, 0)] = '\0';
  std::string directory(path);
  return directory.substr(0, directory.rfind('/'));
}

using Environment = std::map<std::string, std::string>;

std::string RunProgram(const std::vector<std::string>& words, const Environment& environment) {
  int ends[2];
  if (pipe(ends) != 0) Fail("no pipe");
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    unsetenv("LD_PRELOAD");
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Fail(words[0] + " failed");
  return text;
}

Json RunSelf(const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string> words = {"/proc/self/exe"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return Json::parse(RunProgram(words, environment));
}

Environment Nothing(const std::string& shim) {
  Environment environment = {{"LD_LIBRARY_PATH", Directory() + "/noop"}};
  if (shim.empty()) return environment;
  // Less than what is asked for, so that the shim serves everything and keeps what is freed.
  environment.insert({{"LD_PRELOAD", shim},
                      {"ATP_BUDGET", "64MiB"},
                      {"ATP_HOST_BUDGET", "64TiB"},
                      {"ATP_LEDGER", "off"},
                      {"ATP_SOCKET", "off"},
                      {"ATP_RECORD", "off"},
                      {"ATP_LOG", "error"}});
  return environment;
}

Environment Simulated() {
  return {{"LD_LIBRARY_PATH", Directory() + "/../../lib/sim"},
          {"ATP_SIM_GPU", "a100-40g"},
          {"ATP_SIM_MEMORY", "64GiB"}};
}

// What an example asks of the driver: lines of the true trace, in order.
std::string Record(const std::string& name, const std::vector<std::string>& command) {
  const std::string trace = "/tmp/heap." + std::to_string(getpid()) + ".trace";
  const std::string stream = trace + "." + name;
  std::vector<std::string> words = command;
  words[0] = Directory() + "/../examples/" + command[0];
  Environment environment = Simulated();
  environment["ATP_SIM_THREADS"] = "1";
  environment["ATP_SIM_TRACE"] = trace;
  environment["ATP_SIM_MODEL"] = "repeats";
  RunProgram(words, environment);
  std::ifstream in(trace);
  std::ofstream out(stream);
  for (std::string line; std::getline(in, line);) {
    unsigned long long block = 0, bytes = 0;
    if (sscanf(line.c_str(), "{\"alloc\":%llu,\"bytes\":%llu", &block, &bytes) == 2) {
      out << block << " " << bytes << "\n";
    } else if (sscanf(line.c_str(), "{\"free\":%llu", &block) == 1) {
      out << block << " 0\n";
    }
  }
  unlink(trace.c_str());
  return stream;
}

struct Recording {
  std::string name, way;
  std::vector<std::string> command;
};

std::vector<Recording> Recordings(bool quick) {
  const auto residual = [&](const char* allocator) {
    const std::string blocks = quick ? "4" : "32", batch = quick ? "32" : "96";
    return std::vector<std::string>{
        "train_residual", "--allocator", allocator,      "--blocks", blocks, "--width", "512",
        "--batch",        batch,         "--iterations", "4"};
  };
  return {{"train_residual, plain", "plain", residual("plain")},
          {"train_residual, stream-ordered", "ordered", residual("async")},
          {"train_residual, native cache", "plain", residual("caching")}};
}

void MeasureTimes(const std::string& shim, bool quick, Json* all) {
  const std::string rounds = quick ? "1" : "60";
  Json& result = *all;
  result["pair_ns"]["shim"] = RunSelf({"--times", "all", rounds}, Nothing(shim));
  result["pair_ns"]["driver that does nothing"] = RunSelf({"--times", "", rounds}, Nothing(""));
  if (!quick) {
    result["pair_ns"]["simulated driver"] = RunSelf({"--times", "", "5"}, Simulated());
  }
  result["pair_ns"]["first fit, 1 MiB"] = FirstFitTimes();
}

void MeasureFootprints(const std::string& shim, bool quick, Json* all) {
  Json& result = *all;
  Environment environment = Nothing(shim);
  environment["ATP_NOOP_BOOKS"] = "1";
  for (const Recording& recording : Recordings(quick)) {
    const std::string stream = Record("stream", recording.command);
    result["footprint"][recording.name] =
        RunSelf({"--footprint", recording.way, stream}, environment);
    unlink(stream.c_str());
  }
  for (const char* way : {"ordered", "plain"}) {
    result["footprint"][std::string("random, ") + way] =
        RunSelf({"--footprint", way, ""}, environment);
  }
}

std::string Number(const Json& value) {
  if (value.is_null()) return "-";
  char text[32];
  snprintf(text, sizeof text, "%.1f", value.get<double>());
  return text;
}

void PrintTables(const Json& result) {
  const Json none = Json::object();
  const Json& times = result.contains("pair_ns") ? result["pair_ns"] : none;
  const Json& footprints = result.contains("footprint") ? result["footprint"] : none;
  if (!times.empty()) printf("nanoseconds for a free and an allocation\n");
  for (const auto& [who, rows] : times.items()) {
    for (const auto& [what, row] : rows.items()) {
      printf("  %-26s %-22s", who.c_str(), what.c_str());
      if (!row.is_object()) printf(" %s", Number(row).c_str());
      for (const auto& [way, ns] : row.items()) {
        if (row.is_object()) printf("  %s %s", way.c_str(), Number(ns).c_str());
      }
      printf("\n");
    }
  }
  if (!footprints.empty()) printf("held from the driver / asked for, both at most\n");
  for (const auto& [what, row] : footprints.items()) {
    printf("  %-34s %6.3f  (%llu MiB asked for, %llu requests)\n", what.c_str(),
           row["ratio"].get<double>(),
           static_cast<unsigned long long>(row["largest_live_bytes"].get<uint64_t>() / kMiB),
           static_cast<unsigned long long>(row["requests"].get<uint64_t>()));
  }
}

}  // namespace

int main(int argc, char** argv) {
  bool json = false, quick = false;
  std::string part;
  std::string shim = Directory() + "/../../lib/libatpshim.so";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--times" && i + 2 < argc) {
      printf("%s\n", MeasureTimes(argv[i + 1][0] != '\0', atoi(argv[i + 2])).dump().c_str());
      return 0;
    } else if (argument == "--footprint" && i + 2 < argc) {
      printf("%s\n", MeasureFootprint(argv[i + 1], argv[i + 2]).dump().c_str());
      return 0;
    } else if (argument == "--json") {
      json = true;
    } else if (argument == "--quick") {
      quick = true;
    } else if (argument == "--part" && i + 1 < argc) {
      part = argv[++i];
    } else if (argument == "--shim" && i + 1 < argc) {
      shim = argv[++i];
    } else {
      const bool help = argument == "--help";
      fprintf(help ? stdout : stderr,
              "usage: heap [--json] [--quick] [--part time|footprint] [--shim FILE]\n"
              "What the shim's heap costs: nanoseconds of an allocation with its free, and memory "
              "held for what is asked for.\n"
              "Exit codes: 0 measured, 1 something failed, 2 usage.\n");
      return help ? 0 : 2;
    }
  }
  Json result;
  if (part != "footprint") MeasureTimes(shim, quick, &result);
  if (part != "time") MeasureFootprints(shim, quick, &result);
  if (json) {
    printf("%s\n", result.dump().c_str());
  } else {
    PrintTables(result);
  }
  return 0;
}
