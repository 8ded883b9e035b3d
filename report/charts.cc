// SPDX-License-Identifier: Apache-2.0
#include "report/charts.h"

#include <algorithm>

#include "report/words.h"

namespace atp::report {

const char* const kCauseColors[kCauses] = {"var(--in)", "var(--out)", "var(--host)"};

namespace {

using protocol::MeasuredIteration;
using protocol::RunRecordMove;

constexpr size_t kBins = 240;  // of a time axis: a few pixels each
constexpr size_t kBars = 120;  // of a launch axis

double Scaled(uint64_t bytes, const Unit& unit) { return static_cast<double>(bytes) * unit.factor; }

std::string InIteration(const Unit& unit) {
  return std::string("time in the iteration (") + unit.name + ")";
}

Series Level(const char* name, const char* color, double from, double to, double y) {
  Series series{name, color, {{from, y}, {to, y}}};
  series.dashed = true;
  return series;
}

// Bytes of a direction in each bin of [0, seconds).
std::vector<double> Binned(const MeasuredIteration& m, bool to_device, double seconds) {
  std::vector<double> bytes(kBins, 0);
  const double width = seconds / kBins;
  for (const RunRecordMove& move : m.moves) {
    if ((move.to_device != 0) != to_device || move.end_ns <= move.begin_ns) continue;
    const auto at = [&](uint64_t ns) {
      return (static_cast<double>(ns) - static_cast<double>(m.head.begin_ns)) * 1e-9;
    };
    const double begin = at(move.begin_ns), end = at(move.end_ns);
    if (end <= 0 || begin >= seconds) continue;
    const double rate = static_cast<double>(move.bytes) / (end - begin);
    const size_t first = static_cast<size_t>(std::max(0.0, begin) / width);
    const size_t last = std::min(kBins - 1, static_cast<size_t>(std::max(0.0, end) / width));
    for (size_t i = first; i <= last; ++i) {
      const double low = static_cast<double>(i) * width, high = low + width;
      bytes[i] += rate * std::max(0.0, std::min(end, high) - std::max(begin, low));
    }
  }
  return bytes;
}

}  // namespace

Panel IterationsPanel(const Analysis& a) {
  double most = 0, least_plain = 0;
  for (const IterationTime& it : a.iterations) {
    if (it.row.plan > 0) most = std::max(most, it.seconds);
    if (it.row.plan == 0) least_plain = std::max(least_plain, it.seconds);
  }
  const Unit unit = TimeUnit(most > 0 ? most : least_plain);
  Series plain{"plain managed memory", "var(--plain)", {}};
  Series planned{"by plan", "var(--run)", {}}, others{"by plan, other phases", "var(--host)", {}};
  plain.dots = planned.dots = others.dots = true;
  double first = 0, last = 1;
  for (const IterationTime& it : a.iterations) {
    const double x = static_cast<double>(it.number + 1);
    if (it.number == a.iterations.front().number) first = x;
    last = x;
    if (it.seconds <= 0) continue;
    Series& series = it.row.plan == 0 ? plain : it.row.phase == a.phase ? planned : others;
    series.points.push_back({x, it.seconds * unit.factor});
  }
  Panel panel{"",
              "iteration, counted since memory first had to move",
              std::string("time (") + unit.name + ")",
              {plain, planned},
              {}};
  if (!others.points.empty()) panel.series.push_back(others);
  if (a.measured) {
    panel.series.push_back(
        Level("bound_safe", "var(--safe)", first, last, a.bounds.safe * unit.factor));
    panel.series.push_back(
        Level("bound_any", "var(--any)", first, last, a.bounds.any * unit.factor));
    // Near the bounds is where one looks; what is far above stands at the top, with its value.
    constexpr double kTimesBound = 2.5;
    if (a.typical_seconds > 0) {
      panel.y_max = std::max(a.typical_seconds * 1.25, a.bounds.safe * kTimesBound) * unit.factor;
      panel.y_max = std::min(panel.y_max, std::max(most, least_plain) * unit.factor * 1.15);
    }
  }
  return panel;
}

Panel ResidencyPanel(const Analysis& a, const protocol::DeviceRun& run) {
  const Unit unit = TimeUnit(a.seconds);
  const uint64_t allocated = run.facts.managed_bytes;
  const Unit size = BytesUnit(static_cast<double>(std::max(allocated, a.footprint.total())));
  Series resident{"managed memory on the device", "var(--run)", {}, true};
  uint64_t level = 0;
  for (const LaunchTime& launch : a.launches) {
    level = launch.resident_bytes;
    resident.points.push_back({launch.begin * unit.factor, Scaled(level, size)});
  }
  const double end = a.seconds * unit.factor;
  resident.points.push_back({end, Scaled(level, size)});
  Panel panel{"", InIteration(unit), size.name, {resident}, {}};
  const auto line = [&](const char* name, const char* color, uint64_t bytes) {
    panel.series.push_back(Level(name, color, 0, end, Scaled(bytes, size)));
  };
  line("room for it", "var(--limit)", a.trace.device_bytes);
  line("touched in an iteration", "var(--plain)", a.footprint.total());
  if (allocated > a.footprint.total()) line("allocated", "var(--host)", allocated);
  return panel;
}

Panel LinkPanel(const Analysis& a, const MeasuredIteration& measured) {
  const Unit unit = TimeUnit(a.seconds);
  const double width = a.seconds / kBins;
  Panel panel{"", InIteration(unit), "rate (GB/s)", {}, {}};
  for (const bool to_device : {true, false}) {
    Series series{to_device ? "to the device (H2D)" : "to the host (D2H)",
                  kCauseColors[to_device ? kToDevice : kToHost],
                  {},
                  true};
    const std::vector<double> bytes = Binned(measured, to_device, a.seconds);
    for (size_t i = 0; i < kBins; ++i) {
      series.points.push_back(
          {(static_cast<double>(i) + 0.5) * width * unit.factor, bytes[i] / width * 1e-9});
    }
    panel.series.push_back(std::move(series));
  }
  const double end = a.seconds * unit.factor;
  const double best = std::max(a.trace.link.h2d, a.trace.link.d2h) * 1e-9;
  if (best > 0) panel.series.push_back(Level("the link alone", "var(--limit)", 0, end, best));
  return panel;
}

Panel WaitsPanel(const Analysis& a) {
  const size_t step = (a.launches.size() + kBars - 1) / kBars;
  std::vector<Waits> bars((a.launches.size() + step - 1) / std::max<size_t>(step, 1));
  double most = 0;
  for (size_t i = 0; i < a.launches.size(); ++i) {
    for (int c = 0; c < kCauses; ++c) bars[i / step][c] += a.launches[i].waits[c];
    most = std::max(most, Sum(bars[i / step]));
  }
  const Unit unit = TimeUnit(most);
  const char* names[kCauses] = {"waiting for H2D", "waiting for D2H", "waiting for the host"};
  Panel panel{"",
              "launch of the iteration, in order",
              std::string("waiting in front of it (") + unit.name + ")",
              {},
              {}};
  if (step > 1) panel.x_label += " (each bar: " + std::to_string(step) + " launches)";
  panel.bar_width = static_cast<double>(step);
  for (int c = 0; c < kCauses; ++c) {
    Series series{names[c], kCauseColors[c], {}};
    series.bars = true;
    for (size_t i = 0; i < bars.size(); ++i) {
      const double middle = static_cast<double>(i * step) + (panel.bar_width + 1) / 2;
      series.points.push_back({middle, bars[i][c] * unit.factor});
    }
    panel.series.push_back(std::move(series));
  }
  return panel;
}

Panel MovedPanel(const Analysis& a) {
  uint64_t most = 0;
  for (const IterationTime& it : a.iterations) {
    most = std::max({most, it.row.in_bytes, it.row.out_bytes, it.row.dropped_bytes});
  }
  const Unit size = BytesUnit(static_cast<double>(most));
  Panel panel{"",
              "iteration, counted since memory first had to move",
              std::string("moved by plan (") + size.name + ")",
              {},
              {}};
  const auto add = [&](const char* name, const char* color, uint64_t protocol::RunRecordRow::*of) {
    Series series{name, color, {}};
    for (const IterationTime& it : a.iterations) {
      if (it.row.plan == 0) continue;
      series.points.push_back({static_cast<double>(it.number + 1), Scaled(it.row.*of, size)});
    }
    panel.series.push_back(std::move(series));
  };
  add("to the device (H2D)", kCauseColors[kToDevice], &protocol::RunRecordRow::in_bytes);
  add("to the host (D2H)", kCauseColors[kToHost], &protocol::RunRecordRow::out_bytes);
  add("left without a copy", "var(--safe)", &protocol::RunRecordRow::dropped_bytes);
  return panel;
}

}  // namespace atp::report
