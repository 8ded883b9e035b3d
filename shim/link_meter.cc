// SPDX-License-Identifier: Apache-2.0
#include "shim/link_meter.h"

#include <algorithm>
#include <utility>

namespace atp::shim {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr size_t kEnough = 16;  // moves; fewer say little

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

// Where the other direction comes and goes within a move: what is left of its bytes and time when
// the part that it had the link to itself is taken off. 0: too little of that.
double DuplexOf(const std::vector<std::array<double, 3>>& mixed, double alone) {
  constexpr double kLeast = 0.25;
  std::vector<double> rates;
  for (const auto& [by_itself, beside, bytes] : mixed) {
    if (beside < kLeast * (by_itself + beside)) continue;
    const double left = bytes - alone / kNsPerSecond * by_itself;
    rates.push_back(std::max(left, 0.0) / beside * kNsPerSecond);
  }
  return Quantile(std::move(rates), 0.5);
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

LinkMeter::Rates LinkMeter::Estimate(int direction) {
  const std::vector<Span> own = Spans(direction), other = Spans(1 - direction);
  std::vector<double> alone, duplex;         // bytes per second
  std::vector<std::array<double, 3>> mixed;  // nanoseconds alone, with the other one; bytes
  size_t first = 0;
  for (const Span& s : own) {
    if (!s.queued) continue;
    while (first < other.size() && other[first].end <= s.begin) ++first;
    uint64_t both = 0;
    for (size_t i = first; i < other.size() && other[i].begin < s.end; ++i) {
      both += std::min(s.end, other[i].end) - std::max(s.begin, other[i].begin);
    }
    const double took = static_cast<double>(s.end - s.begin);
    const double share = static_cast<double>(both) / took;
    const double rate = static_cast<double>(s.bytes) / took * kNsPerSecond;
    constexpr double kMostly = 0.9;
    if (share > kMostly) duplex.push_back(rate);
    if (share < 1 - kMostly) alone.push_back(rate);
    const double beside = static_cast<double>(both);
    mixed.push_back({took - beside, beside, static_cast<double>(s.bytes)});
  }
  Rates rates;
  rates.alone = Quantile(std::move(alone), 0.75);
  rates.duplex = Quantile(std::move(duplex), 0.5);
  if (rates.duplex == 0 && rates.alone > 0) rates.duplex = DuplexOf(mixed, rates.alone);
  double& last_duplex = directions_[direction].duplex;
  if (rates.duplex == 0) rates.duplex = last_duplex;
  if (rates.alone > 0) rates.duplex = std::min(rates.duplex, rates.alone);
  last_duplex = rates.duplex;
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
