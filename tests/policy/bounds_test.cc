// SPDX-License-Identifier: Apache-2.0
#include "policy/bounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "policy/lifetimes.h"
#include "tests/policy/random_trace.h"
#include "tests/policy/test_trace.h"

namespace atp::policy {
namespace {

// The turn-point bound word for word, in O(n^2) and more.
double PlainClosed(const Trace& trace, double memory, bool clean_leaves_free) {
  const Lifetimes life = FindLifetimes(trace);
  const int64_t n = static_cast<int64_t>(trace.launches.size());
  auto seconds = [&](int64_t k) {
    return trace.launches[static_cast<size_t>(((k % n) + n) % n)].seconds;
  };
  double worst = 0;
  for (int64_t k = 0; k < n; ++k) {
    const double excess = static_cast<double>(life.live[static_cast<size_t>(k)]) - memory;
    for (int64_t j = 0; j < n; ++j) {  // j launches before k, or from k on
      double before = 0, after = 0, older = 0, later = 0;
      for (int64_t i = 1; i <= j; ++i) before += seconds(k - i);
      for (int64_t i = 0; i < j; ++i) after += seconds(k + i);
      for (const auto& interval : life.intervals) {
        for (int64_t shift : {int64_t{0}, n}) {
          const int64_t first = static_cast<int64_t>(interval.last_use) + 1 - shift;
          const int64_t last = static_cast<int64_t>(interval.next_use) - 1 - shift;
          if (first > k || last < k) continue;
          const double bytes = static_cast<double>(interval.bytes);
          const bool clean = clean_leaves_free && !life.written[interval.tensor];
          if (clean || first < k - j) older += bytes;
          if (last >= k + j) later += bytes;
        }
      }
      worst = std::max(worst, (excess - older) / trace.link.d2h - before);
      worst = std::max(worst, (excess - later) / trace.link.h2d - after);
    }
  }
  return ComputeSeconds(trace) + worst;
}

// Seconds that one window lacks at least, from the end of launch p to the start of launch q.
double PlainWindow(const Trace& trace, double memory, bool clean_leaves_free, int64_t p,
                   int64_t q) {
  const Lifetimes life = FindLifetimes(trace);
  const int64_t n = static_cast<int64_t>(trace.launches.size());
  const size_t at_p = static_cast<size_t>(p % n), at_q = static_cast<size_t>(q % n);
  double in = static_cast<double>(life.touched[at_p]) - memory;
  double out = static_cast<double>(life.touched[at_q]) - memory, inside = 0;
  for (int64_t k = p + 1; k < q; ++k) inside += trace.launches[static_cast<size_t>(k % n)].seconds;
  for (const auto& interval : life.intervals) {
    const double bytes = static_cast<double>(interval.bytes);
    const bool clean = clean_leaves_free && !life.written[interval.tensor];
    for (int64_t shift : {-n, int64_t{0}, n, 2 * n}) {
      const int64_t last = static_cast<int64_t>(interval.last_use) + shift;
      const int64_t next = static_cast<int64_t>(interval.next_use) + shift;
      if (last < p && p < next && next <= q) in += bytes;             // must be back by q
      if (p <= last && last < q && q < next && !clean) out += bytes;  // was there at p or later
    }
  }
  const double h = std::max(in, 0.0), d = std::max(out, 0.0);
  const LinkRates& link = trace.link;
  // The two lines of the region: through "only in" and "both", and through "only out" and "both".
  const double first = h / link.h2d + d * (1 - link.duplex_h2d / link.h2d) / link.duplex_d2h;
  const double second = d / link.d2h + h * (1 - link.duplex_d2h / link.d2h) / link.duplex_h2d;
  return std::max(first, second) - inside;
}

// The best set of disjoint windows, by trying every place to cut the circle.
double PlainWindows(const Trace& trace, double memory, bool clean_leaves_free) {
  const int64_t n = static_cast<int64_t>(trace.launches.size());
  double best = 0;
  for (int64_t cut = 0; cut < n; ++cut) {
    std::vector<double> sum(static_cast<size_t>(n) + 1, 0);
    for (int64_t q = 1; q <= n; ++q) {
      sum[static_cast<size_t>(q)] = sum[static_cast<size_t>(q - 1)];
      for (int64_t p = 0; p < q; ++p) {
        const double window = PlainWindow(trace, memory, clean_leaves_free, cut + p, cut + q);
        sum[static_cast<size_t>(q)] =
            std::max(sum[static_cast<size_t>(q)], sum[static_cast<size_t>(p)] + window);
      }
    }
    best = std::max(best, sum.back());
  }
  return best;
}

// The window bounds by counting each window by itself.
double PlainAny(const Trace& trace, double memory) {
  const size_t n = trace.launches.size();
  const double compute = ComputeSeconds(trace);
  std::vector<std::set<uint32_t>> reads(n), writes(n);
  for (size_t k = 0; k < n; ++k) {
    reads[k] = {trace.launches[k].reads.begin(), trace.launches[k].reads.end()};
    writes[k] = {trace.launches[k].writes.begin(), trace.launches[k].writes.end()};
  }
  auto touches = [&](size_t k, uint32_t t) {
    return reads[k].contains(t) || writes[k].contains(t);
  };
  double best = compute;
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = a; b < n; ++b) {
      double in = 0, out = 0, inside = 0;
      for (size_t k = a; k <= b; ++k) inside += trace.launches[k].seconds;
      for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
        const double bytes = static_cast<double>(trace.tensors[t].bytes);
        bool before = trace.tensors[t].global;
        for (size_t k = 0; k < a; ++k) before |= touches(k, t);
        size_t first = a;
        while (first <= b && !touches(first, t)) ++first;
        if (first <= b && reads[first].contains(t) && before) in += bytes;
        bool written = false, after = false;
        for (size_t k = a; k <= b; ++k) written |= writes[k].contains(t);
        size_t use = b + 1;
        while (use < n && !touches(use, t)) ++use;
        if (use == n && trace.tensors[t].global) {
          for (use = 0; use < n && !touches(use, t);) ++use;
        }
        after = use < n && reads[use].contains(t);
        if (written && after) out += bytes;
      }
      best = std::max(best, compute - inside + std::max(inside, (in - memory) / trace.link.h2d));
      best = std::max(best, compute - inside + std::max(inside, (out - memory) / trace.link.d2h));
      if (trace.link.duplex_h2d <= 0) continue;
      const double h = in - memory, d = out - memory;
      const LinkRates& link = trace.link;
      const double both =
          std::max(h / link.h2d + d * (1 - link.duplex_h2d / link.h2d) / link.duplex_d2h,
                   d / link.d2h + h * (1 - link.duplex_d2h / link.d2h) / link.duplex_h2d);
      best = std::max(best, compute - inside + std::max(inside, both));
    }
  }
  return best;
}

TEST(Bounds, EqualTheFormulasCountedOneWindowAtATime) {
  int above_compute = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomTraceOptions shape;
    shape.launches = 1 + seed % 17, shape.tensors = 1 + seed * 3 % 13, shape.touches = 3;
    shape.unit = kMiB, shape.most_units = 5, shape.units_per_second = 2;
    Trace trace = RandomTrace(seed, shape);
    trace.link.h2d *= 0.7;
    const Lifetimes life = FindLifetimes(trace);
    const Bytes least = *std::max_element(life.touched.begin(), life.touched.end());
    for (Bytes memory : {least, least + kMiB, least + 6 * kMiB}) {
      const double m = static_cast<double>(memory);
      ASSERT_NEAR(BoundClosed(trace, memory), PlainClosed(trace, m, false), 1e-9) << seed;
      ASSERT_NEAR(BoundSafe(trace, memory), PlainClosed(trace, m, true), 1e-9) << seed;
      ASSERT_NEAR(BoundAny(trace, memory), PlainAny(trace, m), 1e-9) << seed;
      EXPECT_LE(BoundSafe(trace, memory), BoundClosed(trace, memory) + 1e-9);
      above_compute += BoundClosed(trace, memory) > ComputeSeconds(trace) + 1e-9;
    }
  }
  EXPECT_GT(above_compute, 20);
}

TEST(Bounds, OfACoupledLinkLieBetweenTheWorstWindowAndTheBestSetOfWindows) {
  int more_than_one = 0, above_one_way = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomTraceOptions shape;
    shape.launches = 1 + seed % 9, shape.tensors = 1 + seed * 3 % 13, shape.touches = 3;
    shape.unit = kMiB, shape.most_units = 5, shape.units_per_second = 2;
    Trace trace = RandomTrace(seed, shape);
    trace.link.h2d *= 0.9;
    const Lifetimes life = FindLifetimes(trace);
    const Bytes memory = *std::max_element(life.touched.begin(), life.touched.end()) + kMiB;
    const double one_way = BoundSafe(trace, memory);
    trace.link.duplex_h2d = trace.link.h2d * 0.5, trace.link.duplex_d2h = trace.link.d2h * 0.8;
    const int64_t n = static_cast<int64_t>(trace.launches.size());
    double worst = 0;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q <= p + n; ++q) {
        worst = std::max(worst, PlainWindow(trace, static_cast<double>(memory), true, p, q));
      }
    }
    const double sum = PlainWindows(trace, static_cast<double>(memory), true);
    const double stall = BoundSafe(trace, memory) - ComputeSeconds(trace);
    EXPECT_GE(stall, worst - 1e-9) << seed;
    EXPECT_LE(stall, std::max(sum, one_way - ComputeSeconds(trace)) + 1e-9) << seed;
    EXPECT_LE(BoundSafe(trace, memory), BoundClosed(trace, memory) + 1e-9) << seed;
    ASSERT_NEAR(BoundAny(trace, memory), PlainAny(trace, static_cast<double>(memory)), 1e-9)
        << seed;
    more_than_one += stall > worst + 1e-6;
    above_one_way += BoundSafe(trace, memory) > one_way + 1e-6;
  }
  EXPECT_GT(more_than_one, 5);
  EXPECT_GT(above_one_way, 20);
}

TEST(Bounds, ASweepThatIsCopiedBothWaysTakesBothShares) {
  TraceBuilder builder(100);  // MiB per second
  for (int i = 0; i < 10; ++i) builder.Run(0.01, {builder.Global(100)});
  Trace& trace = builder.trace();
  trace.link.duplex_h2d = trace.link.h2d * 0.5, trace.link.duplex_d2h = trace.link.d2h;
  // 600 MiB go each way between the end of a launch and the start of the one before it, with eight
  // launches in between: h / 100 + d / 200 = 9 s, as 6 s of both and 3 s of "only in" give.
  EXPECT_NEAR(BoundClosed(trace, 400 * kMiB), 9.02, 1e-9);
  EXPECT_NEAR(BoundSafe(trace, 400 * kMiB), 6.02, 1e-9);  // never written: leaves free
}

TEST(Bounds, NoPolicyGetsBothDirectionsOfACoupledLinkForTheTimeOfOne) {
  TraceBuilder builder(100);
  std::vector<uint32_t> tensors;
  for (int i = 0; i < 10; ++i) tensors.push_back(builder.Global(100));
  for (uint32_t t : tensors) builder.Run(0.01, {t}, {t});
  Trace& trace = builder.trace();
  EXPECT_NEAR(BoundAny(trace, 400 * kMiB), 6.0, 1e-9);
  trace.link.duplex_h2d = trace.link.h2d * 0.5, trace.link.duplex_d2h = trace.link.d2h * 0.5;
  EXPECT_NEAR(BoundAny(trace, 400 * kMiB), 12.0, 1e-9);  // 600 MiB each way
}

TEST(Bounds, WhatIsOverwrittenUnreadNeedNotLeave) {
  TraceBuilder builder(100);
  const uint32_t a = builder.Global(100), b = builder.Global(100), c = builder.Global(100);
  builder.Run(0.01, {}, {a}).Run(0.01, {}, {b}).Run(0.01, {}, {c});
  builder.Run(0.01, {}, {a}).Run(0.01, {a});
  builder.Run(0.01, {}, {b}).Run(0.01, {b});
  builder.Run(0.01, {}, {c}).Run(0.01, {c});
  EXPECT_NEAR(BoundAny(builder.trace(), 100 * kMiB), 0.09, 1e-9);
}

TEST(Bounds, AgreeWithPublishedTraces) {
  // From a reference program that evaluates the formulas on the whole trace, rounded to 1e-6.
  const Trace bert = ReadTestTrace("BERT-512.jsonl");
  EXPECT_NEAR(ComputeSeconds(bert), 9.832831, 2e-6);
  EXPECT_NEAR(BoundClosed(bert, bert.device_bytes), 12.281753, 2e-6);
  EXPECT_NEAR(BoundSafe(bert, bert.device_bytes), 12.268125, 2e-6);
  EXPECT_NEAR(BoundAny(bert, bert.device_bytes), 10.049916, 2e-6);
  const Trace inception = ReadTestTrace("Inceptionv3-1536.jsonl");
  EXPECT_NEAR(BoundClosed(inception, inception.device_bytes), 59.849776, 2e-6);
  EXPECT_NEAR(BoundSafe(inception, inception.device_bytes), 59.849776, 2e-6);
  EXPECT_NEAR(BoundAny(inception, inception.device_bytes), 59.694368, 2e-6);
}

TEST(Bounds, ASweepOverMoreThanMemoryFetchesTheExcess) {
  TraceBuilder builder(100);  // MiB per second
  for (int i = 0; i < 10; ++i) builder.Run(0.01, {builder.Global(100)});
  // (S - M) / b_H, from the window of all launches; memory holds 4 of 10 tensors.
  EXPECT_NEAR(BoundAny(builder.trace(), 400 * kMiB), 6.0, 1e-9);
}

TEST(Bounds, AreComputeWhenAllFitsOrNothingRuns) {
  TraceBuilder builder;
  const uint32_t a = builder.Global(10);
  builder.Run(1, {a}).Run(2, {a});
  for (auto bound : {BoundClosed, BoundSafe, BoundAny}) {
    EXPECT_DOUBLE_EQ(bound(builder.trace(), 10 * kMiB), 3.0);
    EXPECT_DOUBLE_EQ(bound(Trace{}, 10 * kMiB), 0.0);
  }
}

}  // namespace
}  // namespace atp::policy
