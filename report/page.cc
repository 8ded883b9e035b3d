// SPDX-License-Identifier: Apache-2.0
#include "report/page.h"

#include <algorithm>
#include <ctime>

#include "report/analysis.h"
#include "report/charts.h"
#include "report/page_style.h"
#include "report/sentences.h"
#include "report/words.h"

namespace atp::report {
namespace {

using protocol::DeviceRun;

constexpr size_t kTableRows = 10;

std::string Element(const char* tag, const std::string& text) {
  return std::string("<") + tag + ">" + Escaped(text) + "</" + tag + ">\n";
}

std::string List(const std::vector<std::string>& items, const char* otherwise) {
  if (items.empty()) return Element("p", otherwise);
  std::string html = "<ul>\n";
  for (const std::string& item : items) html += Element("li", item);
  return html + "</ul>\n";
}

// `note` says where the figures come from.
std::string Chart(const char* title, const char* note, const Panel& panel) {
  return std::string("<figure>\n") + Element("h3", title) + Element("p", note) +
         RenderPanel(panel, kOnPage) + "</figure>\n";
}

class Rows {
 public:
  explicit Rows(std::vector<const char*> header) {
    html_ = "<div class=\"wide\"><table>\n<tr>";
    for (const char* cell : header) html_ += std::string("<th>") + cell + "</th>";
    html_ += "</tr>\n";
  }
  void Add(const std::vector<std::string>& cells) {
    html_ += "<tr>";
    for (const std::string& cell : cells) html_ += "<td>" + Escaped(cell) + "</td>";
    html_ += "</tr>\n";
  }
  std::string Html() const { return html_ + "</table></div>\n"; }

 private:
  std::string html_;
};

std::string Tile(const std::string& value, const std::string& what) {
  return "<div class=\"tile\"><b>" + Escaped(value) + "</b><span>" + Escaped(what) +
         "</span></div>\n";
}

std::string Tiles(const DeviceRun& run, const Analysis& a) {
  const double seconds = a.typical_seconds > 0 ? a.typical_seconds : a.seconds;
  std::string html = "<div class=\"tiles\">\n" + Tile(SaySeconds(seconds), "an iteration");
  if (a.measured && a.bounds.safe > 0) {
    html += Tile(SayTimes(seconds / a.bounds.safe) + " x", "bound_safe") +
            Tile(SayTimes(seconds / a.bounds.any) + " x", "bound_any") +
            Tile(SayPercent(Sum(a.waits), a.seconds), "of the time no launch runs");
  }
  html += Tile(SayBytes(static_cast<double>(run.facts.in_bytes)), "moved to the device in all") +
          Tile(SayBytes(static_cast<double>(run.facts.out_bytes)), "moved to the host in all");
  return html + "</div>\n";
}

std::string WaitTable(const Analysis& a) {
  Rows rows({"Cause", "Time in an iteration", "Share"});
  for (int c = 0; c < kCauses; ++c) {
    rows.Add({CauseName(c), SaySeconds(a.waits[c]), SayPercent(a.waits[c], a.seconds)});
  }
  rows.Add(
      {"launches slower than their best", SaySeconds(a.slower), SayPercent(a.slower, a.seconds)});
  return rows.Html();
}

std::string ClassTable(const DeviceRun& run, const Analysis& a) {
  const auto bytes = [](uint64_t n) { return SayBytes(static_cast<double>(n)); };
  const auto share = [&](uint64_t n) {
    return SayPercent(static_cast<double>(n), static_cast<double>(a.footprint.total()));
  };
  const uint64_t all = std::max(run.facts.managed_bytes, a.footprint.total());
  Rows rows({"What becomes of it", "Bytes", "Of what an iteration touches"});
  const Footprint& f = a.footprint;
  rows.Add({"stays on the device", bytes(f.stays), share(f.stays)});
  rows.Add({"leaves and comes back, without a copy to the host (only read)", bytes(f.dropped),
            share(f.dropped)});
  rows.Add({"leaves by a copy to the host and comes back", bytes(f.copied), share(f.copied)});
  rows.Add({"managed memory that the iteration does not touch", bytes(all - f.total()), ""});
  rows.Add({"plain device memory beside it", bytes(run.facts.native_bytes), ""});
  return rows.Html();
}

std::string KernelTable(const Analysis& a) {
  Rows rows({"Kernel or copy", "Launches", "Runs", "Waits in front: H2D", "D2H", "Host",
             "Slower than its best"});
  for (size_t i = 0; i < std::min(kTableRows, a.kernels.size()); ++i) {
    const KernelTime& k = a.kernels[i];
    rows.Add({k.name, std::to_string(k.launches), SaySeconds(k.seconds),
              SaySeconds(k.waits[kToDevice]), SaySeconds(k.waits[kToHost]),
              SaySeconds(k.waits[kHost]), SaySeconds(k.slower)});
  }
  return rows.Html();
}

std::string AllocationTable(const Analysis& a) {
  const auto bytes = [](uint64_t n) { return SayBytes(static_cast<double>(n)); };
  Rows rows({"Allocation, or part of one", "Size", "To the device", "To the host", "Without a copy",
             "Use", "First used by"});
  for (size_t i = 0; i < std::min(kTableRows, a.allocations.size()); ++i) {
    const AllocationTraffic& t = a.allocations[i];
    if (t.in_bytes + t.out_bytes + t.dropped_bytes == 0) break;
    std::string name = std::string("#").append(std::to_string(t.id));
    if (t.offset > 0) name.append(" from ").append(bytes(t.offset)).append(" on");
    rows.Add({std::move(name), bytes(t.bytes), bytes(t.in_bytes), bytes(t.out_bytes),
              bytes(t.dropped_bytes), t.written ? "written" : "only read", t.first_used_by});
  }
  return rows.Html();
}

std::string MeasuredPart(const DeviceRun& run, const Analysis& a) {
  std::string html;
  html += Chart("Residency over one iteration",
                "The shim's own account at each launch of the measured iteration; the driver is "
                "not asked.",
                ResidencyPanel(a, run));
  html += Chart("Link use both ways",
                run.measured->head.cut != 0
                    ? "Moves of the measured iteration, by the shim's clock. It made more than "
                      "were kept: the end is missing."
                    : "Moves of the measured iteration, by the shim's clock. Page faults are not "
                      "seen.",
                LinkPanel(a, *run.measured));
  html += Chart("Waiting, by cause and launch",
                "Time in which no launch ran, by the device's events. The cause is what the link "
                "did meanwhile: a copy to the device (H2D), else one to the host (D2H), else "
                "nothing.",
                WaitsPanel(a));
  html += WaitTable(a);
  html += Element("h3", "Bytes by class") + ClassTable(run, a);
  html += Element("h3", "Kernels and copies, worst first") +
          Element("p", "In the measured iteration.") + KernelTable(a);
  html += Element("h3", "Allocations that move most") +
          Element("p", "What the plan moves in an iteration.") + AllocationTable(a);
  return html;
}

std::string DevicePart(const DeviceRun& run) {
  const Analysis a = Analyse(run);
  std::string html = "<section>\n";
  html += Element("h2", "Device " + std::to_string(run.facts.ordinal) + ": " + run.facts.name);
  html += Element(
      "p", SayBytes(static_cast<double>(run.facts.total_bytes)) + " of memory, budget " +
               SayBytes(static_cast<double>(run.facts.budget_bytes)) + ", room " +
               SayBytes(static_cast<double>(run.facts.capacity_bytes)) + " after head-room; " +
               SayBytes(static_cast<double>(run.facts.managed_bytes)) +
               " of managed memory allocated");
  html += "<div class=\"words\">\n" + List(InPlainWords(run, a), "") + "</div>\n";
  if (!a.iterations.empty()) {
    html += Tiles(run, a);
    html += Chart("Time per iteration, against both bounds",
                  "By the device's events where they are known, else by the host's clock. Bounds "
                  "are computed from the measured launches, each at its best, and the measured "
                  "link. A triangle stands for a value above the chart.",
                  IterationsPanel(a));
    html += Chart("Moved in each iteration",
                  "Counted when a move is issued. What the driver moves by page faults is not "
                  "seen.",
                  MovedPanel(a));
  }
  if (a.measured) html += MeasuredPart(run, a);
  html += Element("h3", "What was learned") + List(WhatWasLearned(run, a), "");
  html +=
      Element("h3", "What was switched off, and why") + List(WhatWasSwitchedOff(run), "Nothing.");
  return html + "</section>\n";
}

std::string StartedAt(uint64_t ns) {
  const time_t seconds = static_cast<time_t>(ns / 1'000'000'000);
  tm parts{};
  char text[32];
  if (gmtime_r(&seconds, &parts) == nullptr ||
      strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0) {
    return "?";
  }
  return text;
}

}  // namespace

std::string MakePage(const protocol::RunRecord& run) {
  std::string html =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>ATP Shim: " +
      Escaped(run.header.command) + "</title>\n<style>" + kPageStyle +
      "</style>\n</head>\n<body>\n";
  html += "<header>\n<h1>How this program ran</h1>\n<p><code>" + Escaped(run.header.command) +
          "</code></p>\n";
  html += Element("p", "Process " + std::to_string(run.header.pid) + ", recorded from " +
                           StartedAt(run.header.started_ns) + ". ATP Shim " ATP_VERSION ".");
  if (run.header.simulated != 0) {
    html += Element("p",
                    "On the simulated machine: times are virtual, and every cost in them is "
                    "modelled.");
  }
  html += "</header>\n";
  if (run.devices.empty()) {
    html += "<section>\n<div class=\"words\">\n" +
            Element("p",
                    "Everything fits the memory of the device: nothing had to move, and nothing "
                    "was watched.") +
            "</div>\n</section>\n";
  }
  for (const DeviceRun& device : run.devices) html += DevicePart(device);
  return html + "</body>\n</html>\n";
}

}  // namespace atp::report
