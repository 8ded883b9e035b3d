// SPDX-License-Identifier: Apache-2.0
#include "shim/access_stats.h"

#include <cxxabi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>

#include "shim/resolve.h"
#include "shim/schedule.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/tracker.h"

namespace atp::shim {
namespace {

constexpr uint64_t kPieceBytes = 64 << 10;

struct Counted {
  std::mutex mutex;
  std::map<std::string, AccessCount> kernels;
};
Counted& All() {  // never destroyed: hooks may run until the very end
  static Counted* counted = new Counted;
  return *counted;
}

// Pieces of managed memory of ours that the calling thread's last launch has touched. False: the
// machine does not know.
bool AskForTruth(std::vector<SimTouch>* touches) {
  thread_local std::vector<SimTouch> room(1 << 16);
  const int64_t count = real().atpSimTouched(room.data(), room.size());
  if (count > static_cast<int64_t>(room.size())) {  // this one is lost, the next one is not
    room.resize(static_cast<size_t>(count) * 2);
    return false;
  }
  for (int64_t i = 0; i < count; ++i) {
    if (g_tracker.Find(room[static_cast<size_t>(i)].address) != nullptr) {
      touches->push_back(room[static_cast<size_t>(i)]);
    }
  }
  return count >= 0;
}

double Percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

using Line = std::pair<std::string, AccessCount>;

std::vector<Line> LargestFirst() {
  Counted& all = All();
  std::lock_guard lock(all.mutex);
  std::vector<Line> rows(all.kernels.begin(), all.kernels.end());
  std::stable_sort(rows.begin(), rows.end(), [](const Line& a, const Line& b) {
    return a.second.wrong + a.second.missed > b.second.wrong + b.second.missed;
  });
  return rows;
}

// As a person writes it, without where it is defined and what it takes.
std::string Readable(const std::string& name) {
  int status = 0;
  char* whole = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  if (whole == nullptr) return name;
  std::string text(whole);
  free(whole);
  text.erase(std::min(text.size(), text.rfind('(')));
  for (const char* scope : {"(anonymous namespace)::", "void "}) {
    if (const size_t at = text.find(scope); at != std::string::npos)
      text.erase(0, at + strlen(scope));
  }
  return text;
}

void LogRow(const std::string& name, const AccessCount& c) {
  LogLine(LogLevel::kInfo,
          "access: %-32.32s %8llu launches, predicted %10s, touched %10s, wrong %5.1f %% (whole "
          "blocks %5.1f %%), missed %5.1f %%, without a plan %llu",
          Readable(name).c_str(), static_cast<unsigned long long>(c.launches),
          HumanBytes(c.predicted).text(), HumanBytes(c.touched).text(),
          Percent(c.wrong, c.predicted), Percent(c.wrong_in_blocks, c.predicted),
          Percent(c.missed, c.touched), static_cast<unsigned long long>(c.without_plan));
}

void WriteJsonRow(FILE* file, const char* separator, const char* name, const AccessCount& c) {
  const auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  fprintf(file, "%s{\"kernel\":\"%s\",\"launches\":%llu,\"without_plan\":%llu,", separator, name,
          number(c.launches), number(c.without_plan));
  fprintf(file, "\"predicted_bytes\":%llu,\"touched_bytes\":%llu,\"wrong_bytes\":%llu,",
          number(c.predicted), number(c.touched), number(c.wrong));
  fprintf(file, "\"wrong_block_bytes\":%llu,\"missed_bytes\":%llu}", number(c.wrong_in_blocks),
          number(c.missed));
}

// Names of kernels are identifiers, or text that a compiler has made of a lambda; nothing of JSON
// is in them.
std::string Quotable(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '"' || c == '\\' || c < ' '; }, '?');
  return name;
}

void WriteJson(const std::vector<Line>& rows) {
  const int fd = OpenNamedFile(Settings().access_file, /*append=*/false);
  FILE* file = fd < 0 ? nullptr : fdopen(fd, "w");
  if (file == nullptr) return;
  fprintf(file, "{\"format\":\"atp-access\",\"version\":1,\"known\":%s,\n\"all\":",
          real().atpSimTouched != nullptr ? "true" : "false");
  WriteJsonRow(file, "", "", AccessSum());
  fprintf(file, ",\n\"kernels\":[");
  const char* separator = "\n";
  for (const auto& [name, count] : rows) {
    WriteJsonRow(file, separator, Quotable(name).c_str(), count);
    separator = ",\n";
  }
  fprintf(file, "]}\n");
  fclose(file);
}

}  // namespace

void AccessCount::Add(const AccessCount& other) {
  launches += other.launches;
  without_plan += other.without_plan;
  predicted += other.predicted;
  touched += other.touched;
  wrong += other.wrong;
  wrong_in_blocks += other.wrong_in_blocks;
  missed += other.missed;
}

AccessCount CompareRanges(std::span<const AccessRange> predicted,
                          std::span<const SimTouch> touched) {
  AccessCount count;
  count.launches = 1;
  count.touched = touched.size() * kPieceBytes;
  size_t t = 0;
  for (const AccessRange& range : predicted) {
    count.predicted += range.end - range.begin;
    while (t < touched.size() && touched[t].address < range.begin) ++t, count.missed += kPieceBytes;
    for (uint64_t block = range.begin; block < range.end; block += kGranule) {
      const uint64_t end = std::min(range.end, block + kGranule);
      uint64_t hit = 0;
      while (t < touched.size() && touched[t].address < end) ++t, hit += kPieceBytes;
      count.wrong += end - block - hit;
      if (hit == 0) count.wrong_in_blocks += end - block;
    }
  }
  count.missed += (touched.size() - t) * kPieceBytes;
  return count;
}

std::vector<AccessRange> PredictedRanges(const Schedule& schedule, uint32_t position) {
  std::vector<AccessRange> ranges;
  const policy::Launch& launch = schedule.trace->launches[position];
  for (const auto* list : {&launch.reads, &launch.writes}) {
    for (const uint32_t t : *list) {
      const Placed& placed = schedule.tensors[t];
      const uint64_t begin = placed.allocation->address + placed.offset;
      ranges.push_back({begin, begin + placed.bytes});
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const AccessRange& a, const AccessRange& b) { return a.begin < b.begin; });
  const auto same = std::unique(ranges.begin(), ranges.end());  // read and written
  ranges.erase(same, ranges.end());
  return ranges;
}

void CompareAccess(const LaunchView& launch, const Schedule* schedule, uint32_t position) {
  if (real().atpSimTouched == nullptr) return;
  std::vector<SimTouch> touched;
  if (!AskForTruth(&touched)) return;
  AccessCount count;
  if (schedule != nullptr) {
    count = CompareRanges(PredictedRanges(*schedule, position), touched);
  } else {
    count.without_plan = 1;
  }
  Counted& all = All();
  std::lock_guard lock(all.mutex);
  all.kernels[launch.name != nullptr ? launch.name : "?"].Add(count);
}

AccessCount AccessSum() {
  Counted& all = All();
  std::lock_guard lock(all.mutex);
  AccessCount sum;
  for (const auto& [name, count] : all.kernels) sum.Add(count);
  return sum;
}

void WriteAccessStats() {
  if (!Settings().access_stats) return;
  const std::vector<Line> rows = LargestFirst();
  if (Settings().access_file[0] != '\0') return WriteJson(rows);
  if (real().atpSimTouched == nullptr) {
    return LogLine(LogLevel::kInfo,
                   "access: unknown: this driver does not tell what a launch touches, only the "
                   "simulated machine does");
  }
  for (const auto& [name, count] : rows) LogRow(name, count);
  LogRow("all", AccessSum());
}

}  // namespace atp::shim
