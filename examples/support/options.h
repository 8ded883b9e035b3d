// SPDX-License-Identifier: Apache-2.0
// Command line of the examples: "--name value" and "--name=value" for integers and text, "--name"
// for switches.
// --help prints the list and ends with 0; anything that is not understood ends with exit code 4 and
// names it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace example {

inline constexpr int kExitWrongResult = 1;
inline constexpr int kExitOutOfMemory = 2;
inline constexpr int kExitCudaError = 3;
inline constexpr int kExitUsage = 4;

class Options {
 public:
  explicit Options(std::string about) : about_(std::move(about)) {}

  void Add(const char* name, long* value, long low, long high, const char* text) {
    entries_.push_back({name, value, nullptr, nullptr, low, high, text});
  }
  void Add(const char* name, std::string* value, const char* text) {
    entries_.push_back({name, nullptr, value, nullptr, 0, 0, text});
  }
  void Add(const char* name, bool* value, const char* text) {
    entries_.push_back({name, nullptr, nullptr, value, 0, 0, text});
  }

  void Parse(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      std::string name = argv[i];
      if (name == "--help") PrintHelp(argv[0]);
      std::string value;
      const size_t equals = name.find('=');
      const bool joined = equals != std::string::npos;
      if (joined) {
        value = name.substr(equals + 1);
        name.resize(equals);
      }
      const Entry& entry = Find(name);
      if (entry.flag) {
        *entry.flag = true;
        continue;
      }
      if (!joined) {
        if (i + 1 == argc) Refuse(name + " needs a value");
        value = argv[++i];
      }
      Store(entry, value);
    }
  }

  [[noreturn]] static void Refuse(const std::string& why) {
    std::fprintf(stderr, "usage: %s; --help lists the options\n", why.c_str());
    std::exit(kExitUsage);
  }

 private:
  struct Entry {
    const char* name;
    long* number;
    std::string* text;
    bool* flag;
    long low, high;
    const char* about;
  };

  const Entry& Find(const std::string& name) const {
    for (const Entry& entry : entries_) {
      if (name == entry.name) return entry;
    }
    Refuse("unknown option " + name);
  }

  void Store(const Entry& entry, const std::string& value) const {
    if (entry.text) {
      *entry.text = value;
      return;
    }
    char* end = nullptr;
    const long number = std::strtol(value.c_str(), &end, 10);
    if (value.empty() || *end || number < entry.low || number > entry.high) {
      Refuse(std::string(entry.name) + " " + value + ": wanted is a number from " +
             std::to_string(entry.low) + " to " + std::to_string(entry.high));
    }
    *entry.number = number;
  }

  [[noreturn]] void PrintHelp(const char* program) const {
    std::printf("%s: %s\n\noptions:\n", program, about_.c_str());
    for (const Entry& e : entries_) {
      std::printf("  %-14s %s", e.name, e.about);
      if (e.number) std::printf(" (default %ld)", *e.number);
      std::printf("\n");
    }
    std::printf(
        "  --help         this text\n\nexit codes: 0 success, %d wrong result, %d out of memory,\n"
        "%d another CUDA error, %d wrong options\n",
        kExitWrongResult, kExitOutOfMemory, kExitCudaError, kExitUsage);
    std::exit(0);
  }

  std::string about_;
  std::vector<Entry> entries_;
};

}  // namespace example
