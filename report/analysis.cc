// SPDX-License-Identifier: Apache-2.0
#include "report/analysis.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "policy/bounds.h"
#include "report/intervals.h"
#include "report/words.h"

namespace atp::report {
namespace {

using protocol::DeviceRun;
using protocol::MeasuredIteration;
using protocol::RunRecordLaunch;
using protocol::RunRecordMove;
using protocol::RunRecordRow;
using protocol::RunRecordTensor;

constexpr double kNsPerSecond = 1e9;

std::string NameOf(const MeasuredIteration& m, const RunRecordLaunch& launch) {
  return SayKernel(m.NameOf(launch));
}

policy::Trace TraceOf(const MeasuredIteration& m) {
  policy::Trace trace;
  trace.name = "measured iteration";
  trace.device_bytes = m.head.capacity_bytes;
  trace.link = {m.head.h2d, m.head.d2h, m.head.duplex_h2d, m.head.duplex_d2h};
  for (const RunRecordTensor& t : m.tensors) {
    policy::Tensor tensor;
    tensor.id = std::to_string(t.id);
    tensor.bytes = t.bytes;
    trace.tensors.push_back(std::move(tensor));
  }
  for (const RunRecordLaunch& l : m.launches) {
    policy::Launch launch;
    launch.name = NameOf(m, l);
    launch.seconds = l.best;
    for (uint32_t i = 0; i < l.uses; ++i) {
      const uint32_t use = m.uses[l.first_use + i];
      if (use & protocol::kRunRecordReads) launch.reads.push_back(use / 4);
      if (use & protocol::kRunRecordWrites) launch.writes.push_back(use / 4);
    }
    trace.launches.push_back(std::move(launch));
  }
  return trace;
}

Bounds BoundsOfTrace(const policy::Trace& trace) {
  Bounds bounds;
  bounds.compute = policy::ComputeSeconds(trace);
  bounds.any = bounds.safe = bounds.compute;
  if (trace.link.h2d <= 0 || trace.link.d2h <= 0) return bounds;
  bounds.any = policy::BoundAny(trace, trace.device_bytes);
  bounds.safe = policy::BoundSafe(trace, trace.device_bytes);
  return bounds;
}

// The least memory beyond the capacity with which bound_safe is next to computing alone. The bound
// falls with memory, so that bisection finds it.
uint64_t MissingBytes(const policy::Trace& trace, const Bounds& bounds) {
  constexpr double kNextTo = 1.01;
  constexpr uint64_t kGranule = 2u << 20;
  if (bounds.safe <= bounds.compute * kNextTo) return 0;
  uint64_t all = 0;
  for (const policy::Tensor& t : trace.tensors) all += t.bytes;
  uint64_t low = trace.device_bytes, high = std::max(all, low);  // too little; enough
  while (high - low > std::max(kGranule, all / 256)) {
    const uint64_t middle = low + (high - low) / 2;
    (policy::BoundSafe(trace, middle) <= bounds.compute * kNextTo ? high : low) = middle;
  }
  return high - trace.device_bytes;
}

std::vector<IterationTime> IterationsOf(const DeviceRun& run) {
  std::vector<IterationTime> iterations;
  for (size_t i = 0; i < run.rows.size(); ++i) {
    const RunRecordRow& row = run.rows[i];
    IterationTime time{run.first_row + i, row.seconds, false, row};
    if (time.seconds == 0 && row.at_ns > 0 && row.ended_ns > row.at_ns) {
      time.seconds = static_cast<double>(row.ended_ns - row.at_ns) / kNsPerSecond;
      time.by_host = true;
    }
    iterations.push_back(time);
  }
  return iterations;
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Of the latest planned iterations of a phase: what came before their plan says little of now.
double PlannedSeconds(const std::vector<IterationTime>& iterations, uint32_t phase) {
  constexpr size_t kLatest = 32;
  std::vector<double> seconds;
  uint32_t plan = 0;
  for (size_t i = iterations.size(); i-- > 0 && seconds.size() < kLatest;) {
    const IterationTime& it = iterations[i];
    if (it.row.plan == 0 || it.seconds == 0 || it.row.phase != phase) continue;
    if (plan == 0) plan = it.row.plan;
    if (it.row.plan == plan) seconds.push_back(it.seconds);
  }
  return Median(std::move(seconds));
}

double PlainSeconds(const std::vector<IterationTime>& iterations, uint32_t phase) {
  for (size_t i = iterations.size(); i-- > 0;) {
    const IterationTime& it = iterations[i];
    if (it.row.plan == 0 && it.seconds > 0 && it.row.phase == phase) return it.seconds;
  }
  return 0;
}

// The measured one, which is what the bounds are about; else the latest planned one.
uint32_t PhaseOf(const DeviceRun& run) {
  if (run.measured) return run.measured->head.phase;
  for (size_t i = run.rows.size(); i-- > 0;) {
    if (run.rows[i].plan > 0) return run.rows[i].phase;
  }
  return run.rows.empty() ? 0 : run.rows.back().phase;
}

// The waiting in front of each launch: from the end of the last launch before it.
void FindWaits(const MeasuredIteration& m, Analysis* a) {
  Intervals in, any;
  for (const RunRecordMove& move : m.moves) {
    if (move.to_device) in.Add(move.begin_ns, move.end_ns);
    any.Add(move.begin_ns, move.end_ns);
  }
  in.Merge();
  any.Merge();
  const auto split = [&](double from, double to) {
    Waits waits{};
    if (to <= from) return waits;
    waits[kHost] = to - from;
    if (m.head.begin_ns == 0) return waits;
    const auto at = [&](double s) {
      return m.head.begin_ns + static_cast<uint64_t>(s * kNsPerSecond);
    };
    const auto within = [&](const Intervals& list) {
      return std::min(to - from, static_cast<double>(list.Within(at(from), at(to))) / kNsPerSecond);
    };
    waits[kToDevice] = within(in);
    waits[kToHost] = std::max(0.0, within(any) - waits[kToDevice]);
    waits[kHost] = to - from - waits[kToDevice] - waits[kToHost];
    return waits;
  };
  double busy_until = 0;
  for (LaunchTime& launch : a->launches) {
    launch.waits = split(busy_until, launch.begin);
    busy_until = std::max(busy_until, launch.end);
    for (int c = 0; c < kCauses; ++c) a->waits[c] += launch.waits[c];
    a->slower += std::max(0.0, launch.end - launch.begin - launch.best);
  }
  // The next iteration's first launch waits for its own reasons.
  const Waits last = split(busy_until, a->seconds);
  a->after_last = Sum(last);
  for (int c = 0; c < kCauses; ++c) a->waits[c] += last[c];
}

void FindKernels(Analysis* a) {
  std::map<std::string, KernelTime> by_name;
  for (const LaunchTime& launch : a->launches) {
    KernelTime& kernel = by_name[launch.name];
    kernel.name = launch.name;
    ++kernel.launches;
    kernel.seconds += launch.end - launch.begin;
    kernel.slower += std::max(0.0, launch.end - launch.begin - launch.best);
    for (int c = 0; c < kCauses; ++c) kernel.waits[c] += launch.waits[c];
  }
  for (auto& [name, kernel] : by_name) a->kernels.push_back(std::move(kernel));
  std::stable_sort(a->kernels.begin(), a->kernels.end(), [](const auto& x, const auto& y) {
    const double wx = Sum(x.waits) + x.slower, wy = Sum(y.waits) + y.slower;
    return wx != wy ? wx > wy : x.seconds > y.seconds;
  });
}

void FindAllocations(const MeasuredIteration& m, Analysis* a) {
  std::vector<std::string> first_used_by(m.tensors.size());
  for (const RunRecordLaunch& launch : m.launches) {
    for (uint32_t i = 0; i < launch.uses; ++i) {
      std::string& first = first_used_by[m.uses[launch.first_use + i] / 4];
      if (first.empty()) first = NameOf(m, launch);
    }
  }
  for (size_t i = 0; i < m.tensors.size(); ++i) {
    const RunRecordTensor& t = m.tensors[i];
    constexpr uint64_t kBlock = 2u << 20;
    a->allocations.push_back({t.id, t.first_block * kBlock, t.bytes, t.in_bytes, t.out_bytes,
                              t.dropped_bytes, t.written != 0, first_used_by[i]});
    // A part that leaves twice in an iteration is counted once.
    const uint64_t copied = std::min(t.bytes, t.out_bytes);
    const uint64_t dropped = std::min(t.bytes - copied, t.dropped_bytes);
    a->footprint.copied += copied;
    a->footprint.dropped += dropped;
    a->footprint.stays += t.bytes - copied - dropped;
  }
  std::stable_sort(a->allocations.begin(), a->allocations.end(), [](const auto& x, const auto& y) {
    return x.in_bytes + x.out_bytes > y.in_bytes + y.out_bytes;
  });
}

}  // namespace

double Sum(const Waits& waits) { return std::accumulate(waits.begin(), waits.end(), 0.0); }

double TypicalSeconds(const DeviceRun& run) {
  return PlannedSeconds(IterationsOf(run), PhaseOf(run));
}

double PlainSeconds(const DeviceRun& run) { return PlainSeconds(IterationsOf(run), PhaseOf(run)); }

Bounds BoundsOf(const MeasuredIteration& measured) { return BoundsOfTrace(TraceOf(measured)); }

Analysis Analyse(const DeviceRun& run) {
  Analysis a;
  a.iterations = IterationsOf(run);
  a.phase = PhaseOf(run);
  a.typical_seconds = PlannedSeconds(a.iterations, a.phase);
  a.plain_seconds = PlainSeconds(a.iterations, a.phase);
  if (!run.measured || run.measured->launches.empty()) return a;
  const MeasuredIteration& m = *run.measured;
  a.measured = true;
  a.number = m.head.row;
  for (const RunRecordLaunch& l : m.launches) {
    a.launches.push_back({NameOf(m, l), l.begin, l.end, l.best, {}, l.resident_bytes});
    a.seconds = std::max(a.seconds, l.end);
  }
  for (const IterationTime& it : a.iterations) {
    if (it.number == a.number && !it.by_host) a.seconds = std::max(a.seconds, it.seconds);
  }
  FindWaits(m, &a);
  a.trace = TraceOf(m);
  a.bounds = BoundsOfTrace(a.trace);
  a.missing_bytes = MissingBytes(a.trace, a.bounds);
  FindKernels(&a);
  FindAllocations(m, &a);
  return a;
}

LaunchSpan WhereWaiting(const Analysis& analysis) {
  constexpr double kMost = 0.8;
  double all = 0;
  for (const LaunchTime& launch : analysis.launches) all += Sum(launch.waits);
  LaunchSpan best{0, analysis.launches.empty() ? 0 : analysis.launches.size() - 1};
  double inside = 0;
  size_t first = 0;
  for (size_t last = 0; last < analysis.launches.size(); ++last) {
    inside += Sum(analysis.launches[last].waits);
    while (first < last && inside - Sum(analysis.launches[first].waits) >= kMost * all) {
      inside -= Sum(analysis.launches[first++].waits);
    }
    if (inside >= kMost * all && last - first < best.last - best.first) best = {first, last};
  }
  return best;
}

}  // namespace atp::report
