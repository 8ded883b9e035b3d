// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_model.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "policy/lifetimes.h"
#include "policy/link_region.h"

namespace atp::policy {
namespace {

constexpr double kGb = 1e9;

}  // namespace

LpModel::LpModel(const Trace& trace, Bytes memory, bool clean_leaves_free)
    : n_(int(trace.launches.size())) {
  const Lifetimes life = FindLifetimes(trace);
  for (int k = 0; k < n_; ++k) {
    compute_.push_back(trace.launches[size_t(k)].seconds);
    excess_.push_back((double(life.live[size_t(k)]) - double(memory)) / kGb);
  }
  std::map<std::tuple<uint32_t, uint32_t, bool>, double> merged;
  for (const InactiveInterval& i : life.intervals) {
    const bool copied = !clean_leaves_free || life.written[i.tensor];
    merged[{i.last_use + 1, i.next_use - 1, copied}] += double(i.bytes) / kGb;
  }
  for (const auto& [key, gb] : merged) {
    intervals_.push_back({std::get<0>(key), std::get<1>(key), gb, std::get<2>(key)});
  }
  const LinkRegion region(trace.link);
  in_ = trace.link.h2d / kGb;
  out_ = trace.link.d2h / kGb;
  a1_ = region.a1 * kGb, b1_ = region.b1 * kGb;
  a2_ = region.a2 * kGb, b2_ = region.b2 * kGb;
}

std::vector<LpRow> LpModel::AwayRows() const {
  std::vector<LpRow> rows(size_t(n_), LpRow{});
  for (int k = 1; k < n_; ++k) {
    rows[size_t(k)].columns = {AwayColumn(k), AwayColumn(k - 1)};
    rows[size_t(k)].values = {1, -1};
  }
  rows[0].columns = {AwayColumn(0)};
  rows[0].values = {1};
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const Column& c = intervals_[i];
    const int first = int(c.first), last = int(c.last);
    auto add = [&](int k, double gb) {
      rows[size_t(k)].columns.push_back(IntervalColumn(i));
      rows[size_t(k)].values.push_back(gb);
    };
    if (last >= n_ || first == 0) add(0, -c.gb);
    if (last - first + 1 >= n_) continue;  // away during every launch
    if (int(Fold(first)) > 0) add(int(Fold(first)), -c.gb);
    if (int(Fold(last + 1)) > 0) add(int(Fold(last + 1)), c.gb);
  }
  return rows;
}

LpRow LpModel::LinkRow(int row, int a, int e) const {
  LpRow r;
  // W[a, e] - in * share - out * share >= 0, with W = compute + pauses.
  const bool all = e - a + 1 >= n_;
  for (int k = all ? 0 : a - 1; k <= (all ? n_ - 1 : e); ++k) {
    r.columns.push_back(PauseColumn(k));
    r.values.push_back(1);
    if (all || k >= a) r.at_least -= compute(k);
  }
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const Column& c = intervals_[i];
    const int first = int(c.first), last = int(c.last);
    bool inside = all;
    for (int shift : {-n_, 0, n_}) inside |= first + shift >= a && last + shift <= e;
    if (!inside) continue;
    r.columns.push_back(IntervalColumn(i));
    r.values.push_back(-c.gb * (in_share(row) + (c.copied_out ? out_share(row) : 0)));
  }
  return r;
}

std::vector<LpModel::Around> LpModel::AroundLaunch(int k) const {
  std::vector<Around> around;
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const int first = int(intervals_[i].first), last = int(intervals_[i].last);
    for (int shift : {0, n_}) {
      if (first <= k + shift && k + shift <= last) {
        around.push_back({i, k + shift - first, last - k - shift});
        break;
      }
    }
  }
  return around;
}

LpRow LpModel::ByLaunchRow(int k, int back, int ahead) const {
  LpRow r;
  r.at_least = excess(k);
  std::map<int, double> pauses;  // a window of a whole period names a launch twice
  for (int j = 1; j <= back; ++j) {
    pauses[PauseColumn(k - j)] += out_;
    r.at_least -= out_ * compute(k - j);
  }
  // What began at a may leave in the pause before.
  if (back >= 0) pauses[PauseColumn(k - back - 1)] += out_;
  for (int j = 0; j < ahead; ++j) {
    pauses[PauseColumn(k + j)] += in_;
    r.at_least -= in_ * compute(k + j);
  }
  for (const auto& [column, value] : pauses) {
    r.columns.push_back(column);
    r.values.push_back(value);
  }
  for (const Around& i : AroundLaunch(k)) {
    const bool early = i.since > back || !intervals_[i.interval].copied_out;
    if (!early || i.until < ahead) continue;
    r.columns.push_back(IntervalColumn(i.interval));
    r.values.push_back(intervals_[i.interval].gb);
  }
  return r;
}

}  // namespace atp::policy
