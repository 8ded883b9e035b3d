// SPDX-License-Identifier: Apache-2.0
#include "policy/lp/lp_cuts.h"

#include <algorithm>

namespace atp::policy {
namespace {

// Rows added in a round: enough to get on, few enough that the next solution is quick.
constexpr size_t kLinkCuts = 40;
constexpr size_t kByLaunchCuts = 150;
// Windows that start this near to a worse one say nearly the same.
constexpr int kSpacing = 3;

}  // namespace

LpCuts::LpCuts(const LpModel& model, const double* solution) : model_(model), solution_(solution) {}

std::vector<LpRow> LpCuts::Violated(double tolerance) const {
  std::vector<Cut> cuts;
  FindLinkCuts(0, tolerance, &cuts);
  FindLinkCuts(1, tolerance, &cuts);
  FindByLaunchCuts(tolerance, &cuts);
  std::vector<LpRow> rows;
  for (Cut& cut : cuts) rows.push_back(std::move(cut.row));
  return rows;
}

void LpCuts::FindLinkCuts(int row, double tolerance, std::vector<Cut>* cuts) const {
  const int n = model_.launches();
  // Link seconds of the intervals by their first launch, over two periods.
  std::vector<std::vector<std::pair<int, double>>> starting(size_t(2 * n));
  for (size_t i = 0; i < model_.intervals().size(); ++i) {
    const LpModel::Column& c = model_.intervals()[i];
    const double share = model_.in_share(row) + (c.copied_out ? model_.out_share(row) : 0);
    const double seconds = c.gb * share * solution_[model_.IntervalColumn(i)];
    if (seconds <= 0) continue;
    const int first = int(c.first) % n, length = int(c.last - c.first);
    for (int at : {first, first + n}) {
      if (at + length < 2 * n) starting[size_t(at)].push_back({at + length, seconds});
    }
  }
  // Seconds of running again: of what may run in the pause after launch k, and of what may run
  // there first.
  std::vector<double> running(size_t(n + 1), 0), beginning(size_t(n), 0);
  for (size_t i = 0; i < model_.reruns().size(); ++i) {
    const LpModel::Rerun& r = model_.reruns()[i];
    const double seconds = r.seconds * Dropped(i);
    running[size_t(r.first - 1)] += seconds;
    running[size_t(r.last + 1)] -= seconds;
    beginning[size_t(r.first - 1)] += seconds;
  }
  for (size_t k = 1; k < running.size(); ++k) running[k] += running[k - 1];
  struct Best {
    double violation;
    int a, e;
  };
  std::vector<Best> best;
  std::vector<double> ending(size_t(2 * n),
                             0);  // seconds of intervals from a on, by their last launch
  for (int a = 2 * n - 1; a >= 0; --a) {
    for (const auto& [last, seconds] : starting[size_t(a)]) ending[size_t(last)] += seconds;
    if (a >= n) continue;
    Best worst{0, a, a};
    double inside = 0, window = Pause(a - 1) + running[size_t((a - 1 + n) % n)];
    for (int e = a; e < a + n; ++e) {
      inside += ending[size_t(e)];
      window += Window(e) + beginning[size_t(e % n)];
      if (inside - window > worst.violation) worst = {inside - window, a, e};
    }
    if (worst.violation > tolerance) best.push_back(worst);
  }
  std::sort(best.begin(), best.end(),
            [](const Best& x, const Best& y) { return x.violation > y.violation; });
  std::vector<bool> used(size_t(n), false);
  size_t taken = 0;
  for (const Best& b : best) {
    bool near = false;
    for (int k = b.a - kSpacing; k <= b.a + kSpacing; ++k) near |= used[size_t((k + n) % n)];
    if (near) continue;
    used[size_t(b.a)] = true;
    cuts->push_back({b.violation, model_.LinkRow(row, b.a, b.e)});
    if (++taken == kLinkCuts) break;
  }
}

void LpCuts::FindByLaunchCuts(double tolerance, std::vector<Cut>* cuts) const {
  std::vector<Cut> found;
  for (int k = 0; k < model_.launches(); ++k) {
    if (model_.excess(k) > 0) FindByLaunch(k, tolerance, &found);
  }
  std::sort(found.begin(), found.end(),
            [](const Cut& x, const Cut& y) { return x.violation > y.violation; });
  if (found.size() > kByLaunchCuts) found.resize(kByLaunchCuts);
  std::move(found.begin(), found.end(), std::back_inserter(*cuts));
}

void LpCuts::FindByLaunch(int k, double tolerance, std::vector<Cut>* cuts) const {
  const int n = model_.launches();
  // What is away during k, by how long ago it could first leave, and by when it must be back.
  std::vector<double> recent(size_t(n), 0), soon(size_t(n), 0);
  double free = 0, all = 0;
  for (const LpModel::Around& i : model_.AroundLaunch(k)) {
    const LpModel::Column& c = model_.intervals()[i.interval];
    const double gb = c.gb * solution_[model_.IntervalColumn(i.interval)];
    all += gb;
    (c.copied_out ? recent[size_t(std::min(i.since, n - 1))] : free) += gb;
    soon[size_t(std::min(i.until, n - 1))] += gb;
  }
  double running = 0;  // of what may run again on either side of k; what is near counts less
  for (size_t i = 0; i < model_.reruns().size(); ++i) {
    const LpModel::Rerun& r = model_.reruns()[i];
    if (k < r.first || r.last < k) continue;
    running += r.seconds * Dropped(i);
    free += r.gb * Dropped(i);
    all += r.gb * Dropped(i);
  }
  const double excess = model_.excess(k);
  // Left earlier than `back` launches ago, or free; what is newer is limited by the link out.
  double older = all - free, out = 0, worst_out = 0;
  int back = -1;
  for (int j = 0; j < n - 1; ++j) {
    older -= recent[size_t(j)];
    if (j > 0) out += Window(k - j);
    const double room = model_.rate_out() * (out + running + Pause(k - j - 1));
    const double violation = (excess - free - older - room) / model_.rate_out();
    if (violation > worst_out) worst_out = violation, back = j;
  }
  double later = all, in = 0, worst_in = 0;
  int ahead = -1;
  for (int j = 0; j < n - 1; ++j) {  // back in after `j` more launches
    const double violation =
        (excess - later - model_.rate_in() * (in + (j > 0 ? running : 0))) / model_.rate_in();
    if (violation > worst_in) worst_in = violation, ahead = j;
    later -= soon[size_t(j)];
    in += Window(k + j);
  }
  if (worst_out > tolerance) cuts->push_back({worst_out, model_.ByLaunchRow(k, back, 0)});
  if (worst_in > tolerance) cuts->push_back({worst_in, model_.ByLaunchRow(k, -1, ahead)});
}

}  // namespace atp::policy
