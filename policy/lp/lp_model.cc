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

LpModel::LpModel(const Trace& trace, Bytes memory, bool clean_leaves_free,
                 const std::vector<Recomputation>& recompute)
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
  std::map<std::tuple<uint32_t, uint32_t, bool>, size_t> place;
  for (const auto& [key, gb] : merged) {
    place[key] = intervals_.size();
    intervals_.push_back({std::get<0>(key), std::get<1>(key), gb, std::get<2>(key)});
  }
  for (const Recomputation& r : recompute) {
    const bool copied = !clean_leaves_free || life.written[r.tensor];
    const auto found = place.find({r.last_use + 1, r.next_use - 1, copied});
    if (found == place.end()) continue;
    // Of a chain, what is not dropped itself may be made for others too: only its own launch
    // counts.
    reruns_.push_back({int(r.last_use) + 1, int(r.next_use) - 1, double(r.bytes) / kGb,
                       trace.launches[r.producer].seconds, found->second});
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
  auto add = [&](int first, int last, double gb, int column) {
    auto step = [&](int k, double value) {
      rows[size_t(k)].columns.push_back(column);
      rows[size_t(k)].values.push_back(value);
    };
    if (last >= n_ || first == 0) step(0, -gb);
    if (last - first + 1 >= n_) return;  // away during every launch
    if (int(Fold(first)) > 0) step(int(Fold(first)), -gb);
    if (int(Fold(last + 1)) > 0) step(int(Fold(last + 1)), gb);
  };
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const Column& c = intervals_[i];
    add(int(c.first), int(c.last), c.gb, IntervalColumn(i));
  }
  for (size_t i = 0; i < reruns_.size(); ++i) {
    add(reruns_[i].first, reruns_[i].last, reruns_[i].gb, RerunColumn(i));
  }
  return rows;
}

std::vector<LpRow> LpModel::ShareRows() const {
  std::map<size_t, LpRow> rows;
  for (size_t i = 0; i < reruns_.size(); ++i) {
    const size_t interval = reruns_[i].interval;
    LpRow& row = rows[interval];
    if (row.columns.empty()) {
      row.at_least = -intervals_[interval].gb;
      row.columns.push_back(IntervalColumn(interval));
      row.values.push_back(-intervals_[interval].gb);
    }
    row.columns.push_back(RerunColumn(i));
    row.values.push_back(-reruns_[i].gb);
  }
  std::vector<LpRow> list;
  for (auto& [interval, row] : rows) list.push_back(std::move(row));
  return list;
}

void LpModel::AddPauses(int from, int to, double value, std::vector<double>* row) const {
  for (int k = from; k <= to; ++k) (*row)[size_t(PauseColumn(k))] += value;
  for (size_t i = 0; i < reruns_.size(); ++i) {
    bool inside = false;
    for (int shift : {-n_, 0, n_}) {
      inside |= reruns_[i].first - 1 + shift <= to && reruns_[i].last + shift >= from;
    }
    if (inside) (*row)[size_t(RerunColumn(i))] += value * reruns_[i].seconds;
  }
}

LpRow LpModel::Sparse(const std::vector<double>& row, double at_least) const {
  LpRow r;
  r.at_least = at_least;
  for (size_t c = 0; c < row.size(); ++c) {
    if (row[c] == 0) continue;
    r.columns.push_back(int(c));
    r.values.push_back(row[c]);
  }
  return r;
}

LpRow LpModel::LinkRow(int row, int a, int e) const {
  std::vector<double> r(size_t(columns()), 0);
  double at_least = 0;
  // W[a, e] - in * share - out * share >= 0, with W = compute + pauses.
  const bool all = e - a + 1 >= n_;
  AddPauses(all ? 0 : a - 1, all ? n_ - 1 : e, 1, &r);
  for (int k = all ? 0 : a; k <= (all ? n_ - 1 : e); ++k) at_least -= compute(k);
  for (size_t i = 0; i < intervals_.size(); ++i) {
    const Column& c = intervals_[i];
    const int first = int(c.first), last = int(c.last);
    bool inside = all;
    for (int shift : {-n_, 0, n_}) inside |= first + shift >= a && last + shift <= e;
    if (!inside) continue;
    r[size_t(IntervalColumn(i))] -= c.gb * (in_share(row) + (c.copied_out ? out_share(row) : 0));
  }
  return Sparse(r, at_least);
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
  std::vector<double> r(size_t(columns()), 0);
  double at_least = excess(k);
  for (int j = 1; j <= back; ++j) at_least -= out_ * compute(k - j);
  // What began at a may leave in the pause before.
  if (back >= 0) AddPauses(k - back - 1, k - 1, out_, &r);
  for (int j = 0; j < ahead; ++j) at_least -= in_ * compute(k + j);
  if (ahead > 0) AddPauses(k, k + ahead - 1, in_, &r);
  for (const Around& i : AroundLaunch(k)) {
    const bool early = i.since > back || !intervals_[i.interval].copied_out;
    if (!early || i.until < ahead) continue;
    r[size_t(IntervalColumn(i.interval))] += intervals_[i.interval].gb;
  }
  for (size_t i = 0; i < reruns_.size(); ++i) {  // needs no link
    const bool around = reruns_[i].first <= int(Fold(k)) && int(Fold(k)) <= reruns_[i].last;
    if (around) r[size_t(RerunColumn(i))] += reruns_[i].gb;
  }
  return Sparse(r, at_least);
}

}  // namespace atp::policy
