// SPDX-License-Identifier: Apache-2.0
#include "cli/figures.h"

#include <algorithm>

#include "cli/size.h"
#include "cli/table.h"
#include "report/plot.h"

namespace atp::cli {
namespace {

using report::Panel;
using report::Series;

constexpr double kGiB = 1024.0 * 1024 * 1024;
constexpr int kBins = 160;  // of a timeline: a few pixels each
constexpr const char* kBlue = "#1f6fb4";
constexpr const char* kOrange = "#d9730d";
constexpr const char* kGreen = "#2c8c4a";
constexpr const char* kGrey = "#888888";
constexpr const char* kRed = "#c0392b";

// Times in a unit that keeps the numbers of the axis short.
struct TimeUnit {
  double factor;
  const char* name;
};
TimeUnit UnitFor(double seconds) {
  if (seconds >= 1) return {1, "s"};
  if (seconds >= 1e-3) return {1e3, "ms"};
  return {1e6, "us"};
}

Panel ResidencyPanel(const policy::ReplayResult& result, policy::Bytes memory, TimeUnit unit) {
  Series resident{"on the device", kBlue, {}, true, false};
  // The most within each bin: what counts is whether it fits.
  std::vector<double> most(kBins, 0);
  double level = 0;
  int bin = 0;
  for (const policy::ResidencySample& s : result.residency) {
    const int to = std::clamp(int(s.time / result.period_seconds * kBins), 0, kBins - 1);
    for (; bin < to; ++bin) most[size_t(bin)] = std::max(most[size_t(bin)], level);
    most[size_t(to)] = std::max({most[size_t(to)], level, double(s.bytes)});
    level = double(s.bytes);
  }
  for (; bin < kBins; ++bin) most[size_t(bin)] = std::max(most[size_t(bin)], level);
  for (int i = 0; i < kBins; ++i) {
    resident.points.push_back(
        {(i + 0.5) / kBins * result.period_seconds * unit.factor, most[size_t(i)] / kGiB});
  }
  Series limit{"device memory", kRed, {}, false, true};
  limit.points = {{0, double(memory) / kGiB},
                  {result.period_seconds * unit.factor, double(memory) / kGiB}};
  const std::string time = std::string("time in the period (") + unit.name + ")";
  return {"Residency", time, "resident (GiB)", {resident, limit}, {}, 0};
}

std::vector<double> BytesPerBin(const policy::ReplayResult& result,
                                policy::CopyDirection direction) {
  std::vector<double> bytes(kBins, 0);
  const double width = result.period_seconds / kBins;
  for (const policy::TransferRun& run : result.transfers) {
    if (run.direction != direction || run.end <= run.start) continue;
    const double rate = double(run.bytes) / (run.end - run.start);
    const int first = std::clamp(int(run.start / width), 0, kBins - 1);
    const int last = std::clamp(int(run.end / width), 0, kBins - 1);
    for (int i = first; i <= last; ++i) {
      const double from = std::max(run.start, i * width), to = std::min(run.end, (i + 1) * width);
      bytes[size_t(i)] += std::max(0.0, to - from) * rate;
    }
  }
  return bytes;
}

Panel LinkPanel(const policy::Trace& trace, const policy::ReplayResult& result, TimeUnit unit) {
  const double width = result.period_seconds / kBins;
  Panel panel{
      "Link use", std::string("time in the period (") + unit.name + ")", "rate (GB/s)", {}, {}, 0};
  auto add = [&](const char* name, const char* color, policy::CopyDirection direction) {
    Series series{name, color, {}, true, false};
    const std::vector<double> bytes = BytesPerBin(result, direction);
    for (int i = 0; i < kBins; ++i) {
      series.points.push_back({(i + 0.5) * width * unit.factor, bytes[size_t(i)] / width / 1e9});
    }
    panel.series.push_back(std::move(series));
  };
  add("to the device", kGreen, policy::CopyDirection::kH2d);
  add("to the host", kOrange, policy::CopyDirection::kD2h);
  panel.y_max = std::max(trace.link.h2d, trace.link.d2h) / 1e9;
  return panel;
}

// Share of each bin in which no launch runs.
Panel StallPanel(const policy::ReplayResult& result, TimeUnit unit) {
  const double width = result.period_seconds / kBins;
  std::vector<double> busy(kBins, 0);
  for (size_t k = 0; k < result.launch_start.size(); ++k) {
    const double start = result.launch_start[k], end = result.launch_end[k];
    const int last = std::clamp(int(end / width), 0, kBins - 1);
    for (int i = std::clamp(int(start / width), 0, kBins - 1); i <= last; ++i) {
      busy[size_t(i)] += std::max(0.0, std::min(end, (i + 1) * width) - std::max(start, i * width));
    }
  }
  Series series{"launches wait for data", kRed, {}, true, false};
  for (int i = 0; i < kBins; ++i) {
    const double idle = 100 * (1 - busy[size_t(i)] / width);
    series.points.push_back({(i + 0.5) * width * unit.factor, std::clamp(idle, 0.0, 100.0)});
  }
  return {"Stalls",
          std::string("time in the period (") + unit.name + ")",
          "of the time (%)",
          {series},
          {},
          100};
}

}  // namespace

std::string TimelineSvg(const policy::Trace& trace, const std::string& policy_name,
                        policy::Bytes memory, const policy::ReplayResult& result) {
  const TimeUnit unit = UnitFor(result.period_seconds);
  const std::string title = trace.name + ", policy " + policy_name + ", " + FormatBytes(memory) +
                            ": " + FormatSeconds(result.period_seconds) + " a period, " +
                            FormatSeconds(result.stall_seconds) + " of it stalls";
  return report::RenderSvg(title,
                           {ResidencyPanel(result, memory, unit), LinkPanel(trace, result, unit),
                            StallPanel(result, unit)},
                           "Replayed in the model of a machine; not a measurement.");
}

std::string ThroughputSvg(const policy::Trace& trace, const policy::ThroughputCurve& curve) {
  Series plan{"plan", kBlue, {}, false, false};
  Series safe{"bound_safe", kGrey, {}, false, true};
  Series any{"bound_any", kGreen, {}, false, true};
  Series best{"with recompute (modelled)", kOrange, {}, false, false};
  Series atp{"ATP's aggregate model", kRed, {}, false, true};
  auto add = [&](Series* series, const policy::ThroughputPoint& p, double seconds) {
    if (seconds > 0)
      series->points.push_back({double(p.memory) / kGiB, 100 * curve.compute_s / seconds});
  };
  for (const policy::ThroughputPoint& p : curve.points) {
    add(&safe, p, p.bound_safe_s);
    add(&any, p, p.bound_any_s);
    add(&plan, p, p.plan_s);
    add(&best, p, p.best_s);
    add(&atp, p, p.atp_s);
  }
  Panel panel{"Speed against device memory",
              "device memory (GiB)",
              "speed (% of unlimited memory)",
              {any, safe, plan, best, atp},
              {{double(curve.knee) / kGiB, "knee " + FormatBytes(curve.knee)},
               {double(curve.lossless) / kGiB, "loses nothing: " + FormatBytes(curve.lossless)}},
              100,
              420};
  return report::RenderSvg(trace.name + ": what more memory would bring", {panel},
                           "Modelled, not measured. Recompute: modelled, not executed.");
}

}  // namespace atp::cli
