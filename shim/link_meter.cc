// SPDX-License-Identifier: Apache-2.0
#include "shim/link_meter.h"

#include <algorithm>
#include <utility>

namespace atp::shim {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr size_t kEnough = 16;  // moves; fewer say little
constexpr double kLeast = 0.1;  // of its rate alone a direction keeps beside the other one

// Bytes per second of the link until evictions have shown it: PCIe 4 x16, as reached by copies of 2
// MiB.
constexpr double kAssumedRate = 24e9;

double Quantile(std::vector<double> values, double share) {
  if (values.size() < kEnough) return 0;
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(share * static_cast<double>(values.size()));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// A move beside which the other direction was busy for some of the time.
struct Mixed {
  double alone, beside;  // nanoseconds without the other one, and with it
  double bytes, other;   // of the move; of the other direction meanwhile
};

// What is left of a move's bytes and time when the part that it had the link to itself is taken
// off, as a rate. 0: too little of that.
double DuplexOf(const std::vector<Mixed>& mixed, double alone) {
  std::vector<double> rates;
  for (const Mixed& m : mixed) {
    const double left = m.bytes - alone / kNsPerSecond * m.alone;
    rates.push_back(std::max(left, 0.0) / m.beside * kNsPerSecond);
  }
  return Quantile(std::move(rates), 0.5);
}

// Bytes that a byte of the other direction keeps from moving. Negative: not known.
double CostOf(const std::vector<Mixed>& mixed, double alone) {
  std::vector<double> costs;
  for (const Mixed& m : mixed) {
    const double could = alone / kNsPerSecond * (m.alone + m.beside);
    if (m.other > 0) costs.push_back(std::max(could - m.bytes, 0.0) / m.other);
  }
  return costs.size() < kEnough ? -1 : Quantile(std::move(costs), 0.5);
}

}  // namespace

// Moves of one direction share its engine, first in, first out: a move is on the link from its
// predecessor's end on, or from its own begin when the engine was idle.
void LinkMeter::Moved(bool to_device, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes) {
  Direction& d = directions_[to_device];
  const uint64_t begin = std::max(begin_ns, d.last_end);
  if (end_ns <= begin) return;
  d.ring[d.count++ % kRing] = {begin, end_ns, bytes, begin_ns < d.last_end};
  d.last_end = end_ns;
  if (log_.most == 0) return;
  if (log_.moves.size() < log_.most) {
    log_.moves.push_back({begin, end_ns, bytes, to_device});
  } else {
    log_.cut = true;
  }
}

void LinkMeter::StartLog(size_t most) {
  log_ = {};
  log_.most = most;
  log_.moves.reserve(most);
}

LinkMeter::Log LinkMeter::EndLog() { return std::exchange(log_, {}); }

std::vector<LinkMeter::Span> LinkMeter::Spans(int direction) const {
  const Direction& d = directions_[direction];
  const uint64_t n = std::min<uint64_t>(d.count, kRing);
  std::vector<Span> spans;
  spans.reserve(n);
  for (uint64_t i = d.count - n; i < d.count; ++i) spans.push_back(d.ring[i % kRing]);
  return spans;
}

// Evictions keep their direction busy for some of the time only (their calls take longer than their
// copies), and not always for the same share of it. So what fetches reach beside them is said for
// evictions at the rate that those reach: what each byte of them costs is the same throughout.
LinkMeter::Rates LinkMeter::ToDevice() {
  Rates in = Estimate(1);
  const double out = ToHost().duplex;
  double& last = directions_[1].duplex;
  if (in.cost >= 0 && out > 0) in.duplex = std::max(in.alone - in.cost * out, kLeast * in.alone);
  if (in.duplex == 0) in.duplex = last;
  if (in.alone > 0) in.duplex = std::min(in.duplex, in.alone);
  last = in.duplex;
  return in;
}

LinkMeter::Rates LinkMeter::ToHost() {
  Rates out = Estimate(0);
  double& last = directions_[0].duplex;
  if (out.duplex == 0) out.duplex = last;
  if (out.alone > 0) out.duplex = std::min(out.duplex, out.alone);
  last = out.duplex;
  return out;
}

LinkMeter::Rates LinkMeter::Estimate(int direction) const {
  const std::vector<Span> own = Spans(direction), other = Spans(1 - direction);
  std::vector<double> alone, duplex;  // bytes per second
  std::vector<Mixed> mixed;
  // What moved the other way before that has been forgotten.
  const uint64_t known_from = other.size() == kRing ? other.front().begin : 0;
  size_t first = 0;
  for (const Span& s : own) {
    if (!s.queued || s.begin < known_from) continue;
    while (first < other.size() && other[first].end <= s.begin) ++first;
    double both = 0, bytes = 0;  // of the other one
    for (size_t i = first; i < other.size() && other[i].begin < s.end; ++i) {
      const Span& o = other[i];
      const auto shared = static_cast<double>(std::min(s.end, o.end) - std::max(s.begin, o.begin));
      both += shared;
      bytes += shared / static_cast<double>(o.end - o.begin) * static_cast<double>(o.bytes);
    }
    const double took = static_cast<double>(s.end - s.begin), share = both / took;
    const double rate = static_cast<double>(s.bytes) / took * kNsPerSecond;
    constexpr double kMostly = 0.9, kSome = 0.25;
    if (share > kMostly) duplex.push_back(rate);
    if (share < 1 - kMostly) alone.push_back(rate);
    if (share >= kSome) mixed.push_back({took - both, both, static_cast<double>(s.bytes), bytes});
  }
  Rates rates;
  rates.alone = Quantile(std::move(alone), 0.75);
  rates.duplex = Quantile(std::move(duplex), 0.5);
  if (rates.alone > 0) {
    if (rates.duplex == 0) rates.duplex = DuplexOf(mixed, rates.alone);
    rates.cost = CostOf(mixed, rates.alone);
  }
  return rates;
}

policy::LinkRates LinkMeter::Known() {
  const Rates in = ToDevice(), out = ToHost();
  const bool measured = in.alone > 0 || out.alone > 0 || (in.duplex > 0 && out.duplex > 0);
  return measured ? Link() : assumed_;
}

policy::LinkRates LinkMeter::Link() {
  const LinkMeter::Rates in = ToDevice(), out = ToHost();
  if (in.alone == 0 && out.alone == 0 && assumed_.h2d > 0) return assumed_;
  const auto either = [](double a, double b) { return a > 0 ? a : b; };
  policy::LinkRates link;
  link.h2d = std::max(either(in.alone, out.alone), in.duplex);
  link.d2h = std::max(either(out.alone, in.alone), out.duplex);
  if (link.h2d == 0) link.h2d = either(link.d2h, kAssumedRate);
  if (link.d2h == 0) link.d2h = link.h2d;
  if (in.duplex > 0 && out.duplex > 0) {
    link.duplex_h2d = in.duplex;
    link.duplex_d2h = out.duplex;
  }
  return link;
}

}  // namespace atp::shim
