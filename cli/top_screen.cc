// SPDX-License-Identifier: Apache-2.0
#include "cli/top_screen.h"

#include <algorithm>
#include <functional>

#include "report/words.h"

namespace atp::cli {
namespace {

using report::SayBytes;
using report::SayCount;
using report::SaySeconds;
using report::SayTimes;

std::string Bytes(uint64_t bytes) { return SayBytes(static_cast<double>(bytes)); }

// From what it copies and how long that takes.
std::string Rate(const Job& job, uint64_t bytes) {
  return job.iteration_s > 0 ? SayBytes(static_cast<double>(bytes) / job.iteration_s) + "/s" : "-";
}

const char* StateOf(const Job& job) {
  if (job.off) return "off";
  return job.planned ? "planned" : "plain";
}

struct Column {
  const char* head;
  int goes;  // first where there is no room: 1 is the last to go
  std::function<std::string(const Job&)> text;
};

const std::vector<Column>& Columns() {
  static const std::vector<Column> columns = {
      {"pid", 1, [](const Job& j) { return std::to_string(j.pid); }},
      {"dev", 6, [](const Job& j) { return std::to_string(j.device); }},
      {"state", 3, [](const Job& j) { return std::string(StateOf(j)); }},
      {"budget", 7, [](const Job& j) { return Bytes(j.budget_bytes); }},
      {"managed", 4, [](const Job& j) { return Bytes(j.managed_bytes); }},
      {"in", 8, [](const Job& j) { return Rate(j, j.in_bytes); }},
      {"out", 9, [](const Job& j) { return Rate(j, j.out_bytes); }},
      {"done", 10, [](const Job& j) { return std::to_string(j.iterations); }},
      {"iteration", 2,
       [](const Job& j) { return j.iteration_s > 0 ? SaySeconds(j.iteration_s) : "-"; }},
      {"/ plain", 5,
       [](const Job& j) {
         const bool known = j.iteration_s > 0 && j.plain_iteration_s > 0;
         return known ? SayTimes(j.iteration_s / j.plain_iteration_s) : "-";
       }},
      {"/ bound", 2,
       [](const Job& j) {
         const bool known = j.iteration_s > 0 && j.bound_safe_s > 0;
         return known ? SayTimes(j.iteration_s / j.bound_safe_s) : "-";
       }},
  };
  return columns;
}

using Cells = std::vector<std::string>;

std::vector<size_t> WidthsOf(const std::vector<Cells>& lines) {
  std::vector<size_t> widths(Columns().size(), 0);
  for (const Cells& cells : lines) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  return widths;
}

// Which columns there is room for, beside a few characters of the command.
std::vector<bool> Chosen(const std::vector<size_t>& widths, size_t columns) {
  constexpr size_t kLeastCommand = 12, kGap = 2;
  std::vector<bool> chosen(widths.size(), true);
  for (int goes = 10; goes >= 1; --goes) {
    size_t needs = kLeastCommand;
    for (size_t i = 0; i < widths.size(); ++i) needs += chosen[i] ? widths[i] + kGap : 0;
    if (needs <= columns) break;
    for (size_t i = 0; i < widths.size(); ++i) {
      if (Columns()[i].goes == goes && goes > 1) chosen[i] = false;
    }
  }
  return chosen;
}

std::string Line(const Cells& cells, const std::string& command, const std::vector<size_t>& widths,
                 const std::vector<bool>& chosen, size_t columns) {
  std::string line;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (chosen[i]) line += std::string(widths[i] - cells[i].size(), ' ') + cells[i] + "  ";
  }
  line += command;
  return Printable(line, columns);
}

std::string DaemonLine(const nlohmann::ordered_json& daemon) {
  if (daemon.is_null()) return "no daemon";
  const auto store = daemon.value("store", nlohmann::ordered_json::object());
  return "atpd remembers " + SayCount(store.value("workloads", uint64_t{0}), "workload");
}

}  // namespace

std::string Printable(const std::string& text, size_t most) {
  std::string out;
  size_t characters = 0;
  for (size_t i = 0; i < text.size() && characters < most; ++characters) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead >= 0xc2 && lead < 0xe0   ? 2
                          : lead >= 0xe0 && lead < 0xf0 ? 3
                          : lead >= 0xf0 && lead < 0xf5 ? 4
                                                        : 1;
    bool whole = lead >= 0x20 && lead < 0x7f;
    if (length > 1 && i + length <= text.size()) {
      whole = true;
      for (size_t k = 1; k < length; ++k) {
        whole &= (static_cast<unsigned char>(text[i + k]) & 0xc0) == 0x80;
      }
      // U+0080 to U+009F are control characters too.
      whole &= !(lead == 0xc2 && static_cast<unsigned char>(text[i + 1]) < 0xa0);
    }
    out += whole ? text.substr(i, length) : ".";
    i += whole ? length : 1;
  }
  return out;
}

std::string TopScreen(const std::vector<Job>& jobs, const nlohmann::ordered_json& daemon,
                      const ScreenSize& size) {
  std::vector<std::string> lines;
  lines.push_back(Printable(SayCount(jobs.size(), "job") + (jobs.size() == 1 ? " moves" : " move") +
                                " memory; " + DaemonLine(daemon),
                            size.columns));
  if (!jobs.empty()) {
    std::vector<Cells> cells(1);
    for (const Column& column : Columns()) cells[0].push_back(column.head);
    for (const Job& job : jobs) {
      Cells& row = cells.emplace_back();
      for (const Column& column : Columns()) row.push_back(column.text(job));
    }
    const std::vector<size_t> widths = WidthsOf(cells);
    const std::vector<bool> chosen = Chosen(widths, size.columns);
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string command = i == 0 ? "command" : jobs[i - 1].command;
      lines.push_back(Line(cells[i], command, widths, chosen, size.columns));
    }
  }
  if (lines.size() > size.rows && size.rows > 0) {
    const size_t hidden = lines.size() - size.rows + 1;
    lines.resize(size.rows - 1);
    lines.push_back(Printable("... " + std::to_string(hidden) + " more", size.columns));
  }
  std::string text;
  for (size_t i = 0; i < lines.size(); ++i) text += (i > 0 ? "\n" : "") + lines[i];
  return text;
}

}  // namespace atp::cli
