// SPDX-License-Identifier: Apache-2.0
#include "daemon/share.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>

namespace atp::daemon {
namespace {

// What is given at once: blocks of the driver, so many that a card has a few hundred of them.
Bytes GranuleOf(Bytes memory) {
  constexpr Bytes kBlock = 2u << 20, kParts = 512;
  return std::max<Bytes>(memory / kParts / kBlock, 1) * kBlock;
}

// Its lower hull: more memory never costs time, and the saving by each byte never grows.
std::vector<ShareJob::Point> Convex(std::vector<ShareJob::Point> points) {
  const auto usable = [](const ShareJob::Point& p) { return p.seconds > 0 && p.seconds < 1e12; };
  std::erase_if(points, [&](const ShareJob::Point& p) { return !usable(p); });
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.memory < b.memory; });
  std::vector<ShareJob::Point> hull;
  for (const ShareJob::Point& p : points) {
    if (!hull.empty() && p.seconds >= hull.back().seconds) continue;
    if (!hull.empty() && p.memory == hull.back().memory) hull.pop_back();
    while (hull.size() >= 2) {
      const ShareJob::Point &a = hull[hull.size() - 2], &b = hull.back();
      const double ab = (a.seconds - b.seconds) / static_cast<double>(b.memory - a.memory);
      const double bp = (b.seconds - p.seconds) / static_cast<double>(p.memory - b.memory);
      if (ab > bp) break;
      hull.pop_back();
    }
    hull.push_back(p);
  }
  return hull;
}

// A job while memory is given out.
struct Taker {
  const ShareJob* job = nullptr;
  size_t index = 0;
  std::vector<ShareJob::Point> hull;
  Bytes has = 0, enough = 0;

  // Of the time with everything on the card, what another byte saves.
  double Saving() const {
    const auto next = std::upper_bound(hull.begin(), hull.end(), has,
                                       [](Bytes b, const auto& p) { return b < p.memory; });
    if (next == hull.end() || hull.back().seconds <= 0) return 0;
    if (next == hull.begin()) {  // below what the curve tells of: as at its beginning
      if (hull.size() < 2) return 0;
      return (hull[0].seconds - hull[1].seconds) /
             static_cast<double>(hull[1].memory - hull[0].memory) / hull.back().seconds;
    }
    const ShareJob::Point &a = *(next - 1), &b = *next;
    return (a.seconds - b.seconds) / static_cast<double>(b.memory - a.memory) / hull.back().seconds;
  }
  double Weight() const { return std::isfinite(job->weight) ? std::max(job->weight, 1e-3) : 1; }
  // Savings that are much the same have the same class.
  double Class() const {
    const double worth = Weight() * Saving();
    return worth > 0 ? std::floor(std::log(worth) / std::log(1.25)) : -1e9;
  }
  double Relative() const { return static_cast<double>(has) / Weight(); }
};

bool First(const Taker& a, const Taker& b) {
  const double ca = a.Class(), cb = b.Class();
  if (ca != cb) return ca > cb;
  return a.Relative() < b.Relative();
}

Bytes EnoughFor(const ShareJob& job) {
  const Bytes enough = std::max(job.footprint, job.least);
  return job.most == 0 ? enough : std::min(enough, std::max(job.most, job.least));
}

void GiveToClass(std::vector<Taker>* takers, Bytes granule, Bytes* room) {
  while (*room > 0) {
    Taker* best = nullptr;
    for (Taker& taker : *takers) {
      if (taker.has < taker.enough && (best == nullptr || First(taker, *best))) best = &taker;
    }
    if (best == nullptr) return;
    const Bytes given = std::min({granule, best->enough - best->has, *room});
    best->has += given;
    *room -= given;
  }
}

}  // namespace

std::vector<ShareJob::Point> AssumedCurve(Bytes footprint) {
  return {{0, 3}, {std::max<Bytes>(footprint, 1), 1}};
}

std::vector<Bytes> ShareMemory(Bytes memory, const std::vector<ShareJob>& jobs) {
  std::vector<Bytes> budgets(jobs.size(), 0);
  Bytes room = memory;
  const auto admit = [&](size_t i) {
    budgets[i] = std::max<Bytes>(jobs[i].least, 1);
    room -= std::min(room, budgets[i]);
  };
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (jobs[i].runs) admit(i);
  }
  std::vector<size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return jobs[a].priority > jobs[b].priority; });
  for (const size_t i : order) {
    if (budgets[i] != 0) continue;
    // Nobody of a lower priority slips in before one that waits.
    if (std::max<Bytes>(jobs[i].least, 1) > room) break;
    admit(i);
  }
  std::map<int, std::vector<Taker>, std::greater<>> classes;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (budgets[i] == 0) continue;
    const auto& curve = jobs[i].curve;
    classes[jobs[i].priority].push_back(
        {&jobs[i], i, Convex(curve.empty() ? AssumedCurve(jobs[i].footprint) : curve), budgets[i],
         EnoughFor(jobs[i])});
  }
  for (auto& [priority, takers] : classes) {
    GiveToClass(&takers, GranuleOf(memory), &room);
    for (const Taker& taker : takers) budgets[taker.index] = taker.has;
  }
  return budgets;
}

std::vector<Bytes> WithTheRest(Bytes memory, const std::vector<ShareJob>& jobs,
                               std::vector<Bytes> budgets) {
  Bytes room = memory - std::min(memory, std::accumulate(budgets.begin(), budgets.end(), Bytes{0}));
  std::vector<size_t> open;
  for (size_t i = 0; i < jobs.size(); ++i) {
    if (budgets[i] != 0 && (jobs[i].most == 0 || budgets[i] < jobs[i].most)) open.push_back(i);
  }
  // Those that may have the least beyond what they have come first: their rest is for the others.
  const auto left = [&](size_t i) {
    return jobs[i].most == 0 ? UINT64_MAX : jobs[i].most - budgets[i];
  };
  std::stable_sort(open.begin(), open.end(), [&](size_t a, size_t b) { return left(a) < left(b); });
  double weight = 0;
  for (const size_t i : open) weight += jobs[i].weight;
  for (const size_t i : open) {
    const double part = static_cast<double>(room) * std::min(1.0, jobs[i].weight / weight);
    const Bytes given = std::min({static_cast<Bytes>(part), left(i), room});
    budgets[i] += given;
    room -= given;
    weight = std::max(weight - jobs[i].weight, 1e-9);
  }
  return budgets;
}

std::vector<Bytes> Settled(Bytes memory, const std::vector<ShareJob>& jobs,
                           const std::vector<Bytes>& now, const std::vector<Bytes>& wanted) {
  if (now.size() != wanted.size() || jobs.size() != wanted.size()) return wanted;
  Bytes sum = 0;
  for (size_t i = 0; i < now.size(); ++i) {
    sum += now[i];
    const Bytes change = std::max(now[i], wanted[i]) - std::min(now[i], wanted[i]);
    const bool comes_or_goes = (now[i] == 0) != (wanted[i] == 0);
    const bool outside = now[i] < jobs[i].least || (jobs[i].most != 0 && now[i] > jobs[i].most);
    if (comes_or_goes || outside || change >= memory / 32) return wanted;
  }
  return sum <= memory ? now : wanted;
}

}  // namespace atp::daemon
