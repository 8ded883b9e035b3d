// SPDX-License-Identifier: Apache-2.0
#include "cli/top_screen.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/protocol/sample_record.h"

namespace atp::cli {
namespace {

std::vector<Job> SampleJobs() {
  RunningJob job;
  job.pid = 4711;
  EXPECT_EQ(protocol::ReadRunRecord(protocol::SampleRecord(), &job.run), "");
  return JobWatch().Look({job});
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(TopScreen, ShowsWhatARecordSays) {
  const auto lines = LinesOf(TopScreen(SampleJobs(), nullptr, {200, 24}));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], "1 job moves memory; no daemon");
  // 160 MiB in 0.1 s; a period without a plan took 0.4 s.
  for (const char* part : {"4711", "planned", "320 MiB", "450 MiB", "1.56 GiB/s", "100 ms", "0.25",
                           "./train --size 3"}) {
    EXPECT_NE(lines[2].find(part), std::string::npos) << part << " in " << lines[2];
  }
}

TEST(TopScreen, FitsEveryTerminalAndKeepsWhatMattersMost) {
  const std::vector<Job> jobs(5, SampleJobs()[0]);
  for (size_t columns = 1; columns < 130; ++columns) {
    for (size_t rows = 1; rows < 9; ++rows) {
      const auto lines = LinesOf(TopScreen(jobs, nullptr, {columns, rows}));
      EXPECT_LE(lines.size(), rows);
      for (const std::string& line : lines) EXPECT_LE(line.size(), columns);
    }
  }
  const auto narrow = LinesOf(TopScreen(jobs, nullptr, {40, 24}));
  EXPECT_NE(narrow[1].find("/ bound"), std::string::npos) << narrow[1];
  EXPECT_EQ(narrow[1].find("out"), std::string::npos) << narrow[1];
  EXPECT_NE(LinesOf(TopScreen(jobs, nullptr, {80, 4}))[3].find("... 4 more"), std::string::npos);
}

TEST(TopScreen, WhatAProgramCallsItselfCannotSteerTheTerminal) {
  std::vector<Job> jobs = SampleJobs();
  jobs[0].command = "evil\033[2J\007\xc2\x9b\nname \xc3\xa9 \xff";
  const std::string text = TopScreen(jobs, nullptr, {200, 24});
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20);
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
  EXPECT_NE(text.find("\xc3\xa9"), std::string::npos);
}

TEST(TopScreen, ABoundIsComputedOncePerMeasuredIteration) {
  RunningJob job;
  job.pid = 4711;
  ASSERT_EQ(protocol::ReadRunRecord(protocol::SampleRecord(), &job.run), "");
  JobWatch watch;
  const double bound = watch.Look({job})[0].bound_safe_s;
  EXPECT_GT(bound, 0);
  job.run.devices[0].measured->launches.clear();  // would have no bound if it were looked at
  EXPECT_EQ(watch.Look({job})[0].bound_safe_s, bound);
  ++job.run.devices[0].facts.snapshots;
  EXPECT_NE(watch.Look({job})[0].bound_safe_s, bound);
}

}  // namespace
}  // namespace atp::cli
