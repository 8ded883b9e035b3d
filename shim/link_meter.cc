// SPDX-License-Identifier: Apache-2.0
#include "shim/link_meter.h"

#include <algorithm>

namespace atp::shim {
namespace {

constexpr double kNsPerSecond = 1e9;

}  // namespace

// Moves of one direction share its engine, first in, first out: a move is on the link from its
// predecessor's end on, or from its own begin when the engine was idle.
void LinkMeter::Moved(bool to_device, uint64_t begin_ns, uint64_t end_ns, uint64_t bytes) {
  Direction& d = directions_[to_device];
  const uint64_t begin = std::max(begin_ns, d.last_end);
  if (end_ns <= begin) return;
  d.ring[d.count++ % kRing] = {begin, end_ns, bytes, begin_ns < d.last_end};
  d.last_end = end_ns;
}

std::vector<LinkMeter::Span> LinkMeter::Spans(int direction) const {
  const Direction& d = directions_[direction];
  const uint64_t n = std::min<uint64_t>(d.count, kRing);
  std::vector<Span> spans;
  spans.reserve(n);
  for (uint64_t i = d.count - n; i < d.count; ++i) spans.push_back(d.ring[i % kRing]);
  return spans;
}

LinkMeter::Rates LinkMeter::Estimate(int direction) const {
  const std::vector<Span> own = Spans(direction), other = Spans(1 - direction);
  // bytes = alone * r1 + both * r2, in the least squares over all moves.
  double aa = 0, ab = 0, bb = 0, ay = 0, by = 0;
  double alone_ns = 0, both_ns = 0, bytes = 0;
  size_t first = 0;
  for (const Span& s : own) {
    if (!s.queued) continue;
    while (first < other.size() && other[first].end <= s.begin) ++first;
    double both = 0;
    for (size_t i = first; i < other.size() && other[i].begin < s.end; ++i) {
      both +=
          static_cast<double>(std::min(s.end, other[i].end) - std::max(s.begin, other[i].begin));
    }
    const double alone = static_cast<double>(s.end - s.begin) - both;
    const auto y = static_cast<double>(s.bytes);
    aa += alone * alone, ab += alone * both, bb += both * both, ay += alone * y, by += both * y;
    alone_ns += alone, both_ns += both, bytes += y;
  }
  Rates rates;
  constexpr double kLeastBytes = 64u << 20;  // less says little
  if (bytes < kLeastBytes) return rates;
  constexpr double kTooShort = 0.05;  // of the time
  const double total = alone_ns + both_ns;
  if (both_ns < kTooShort * total) {
    rates.alone = bytes / total * kNsPerSecond;
  } else if (alone_ns < kTooShort * total) {
    rates.duplex = bytes / total * kNsPerSecond;
  } else if (const double det = aa * bb - ab * ab; det > 1e-6 * aa * bb) {
    rates.alone = (ay * bb - by * ab) / det * kNsPerSecond;
    rates.duplex = (by * aa - ay * ab) / det * kNsPerSecond;
  }
  // Noise may turn the fit over; the mean is true then of both.
  const double mean = bytes / total * kNsPerSecond;
  if (rates.alone < 0 || rates.duplex < 0 || (rates.alone > 0 && rates.duplex > rates.alone)) {
    rates = {mean, mean};
  }
  return rates;
}

}  // namespace atp::shim
