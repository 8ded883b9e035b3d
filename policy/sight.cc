// SPDX-License-Identifier: Apache-2.0
#include "policy/sight.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

namespace atp::policy {
namespace {

// One argument of launches that should all reach equally far from it.
using Class = std::tuple<uint64_t, uint64_t, uint32_t>;  // kernel, shape, argument

std::vector<std::vector<Bytes>> CutsOf(const SeenPeriod& period) {
  std::vector<std::vector<Bytes>> cuts(period.allocations.size());
  for (const SeenTouch& t : period.touches) cuts[t.allocation].push_back(t.offset);
  for (std::vector<Bytes>& list : cuts) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return cuts;
}

Bytes ToNextCut(const SeenTouch& touch, const std::vector<Bytes>& cuts, Bytes end) {
  const auto next = std::upper_bound(cuts.begin(), cuts.end(), touch.offset);
  return (next == cuts.end() ? end : std::min(*next, end)) - touch.offset;
}

// What most of a class's tensors show, or 0 when they do not agree. Each tensor has one voice, or
// one that is used often would decide.
class Votes {
 public:
  void Add(const SeenTouch& touch, Bytes reach) {
    voices_.emplace(std::make_pair(touch.allocation, touch.offset), reach);
  }
  Bytes Winner() const {
    constexpr size_t kFewest = 3;
    if (voices_.size() < kFewest) return 0;
    std::map<Bytes, size_t> count;
    for (const auto& [where, reach] : voices_) {
      if (2 * ++count[reach] > voices_.size()) return reach;
    }
    return 0;
  }
  double Confidence(Bytes reach) const {
    size_t right = 0;
    for (const auto& [where, shown] : voices_) right += shown == reach;
    return static_cast<double>(right + 1) / static_cast<double>(voices_.size() + 2);
  }

 private:
  std::map<std::pair<uint32_t, Bytes>, Bytes> voices_;
};

template <typename Visit>  // visit(class, touch index, launch index)
void ForEachUnknown(const SeenPeriod& period, Visit visit) {
  for (size_t i = 0; i < period.launches.size(); ++i) {
    const SeenLaunch& launch = period.launches[i];
    for (uint32_t k = 0; k < launch.touch_count; ++k) {
      const uint32_t t = launch.first_touch + k;
      if (period.touches[t].bytes == 0) visit(Class{launch.kernel, launch.shape, k}, t, i);
    }
  }
}

// Shortens the reaches of touches whose class has no winner by what those with one fit.
void ApplyFits(const SeenPeriod& period, const std::map<Class, Bytes>& winners,
               const std::vector<std::vector<Bytes>>& cuts, std::vector<Bytes>* reaches,
               std::vector<double>* confidence) {
  constexpr double kConfirmed = 0.75;              // one observation more than the fit needs
  using Argument = std::pair<uint64_t, uint32_t>;  // kernel, argument
  std::map<Argument, ExtentFit> fits;
  std::map<Class, LaunchShape> open;
  ForEachUnknown(period, [&](const Class& of, uint32_t, size_t launch) {
    if (launch >= period.scalars.size() || !open.emplace(of, period.scalars[launch]).second) return;
    const auto winner = winners.find(of);
    if (winner == winners.end()) return;
    fits[{std::get<0>(of), std::get<2>(of)}].Observe(period.scalars[launch], winner->second);
  });
  ForEachUnknown(period, [&](const Class& of, uint32_t t, size_t) {
    const auto fit = fits.find({std::get<0>(of), std::get<2>(of)});
    if (fit == fits.end() || winners.contains(of)) return;
    if (cuts[period.touches[t].allocation].size() == 1) return;  // one object, as below
    const ExtentFit::Prediction p = fit->second.Predict(open.at(of));
    if (p.confidence < kConfirmed || p.bytes == 0) return;
    if ((*reaches)[t] < p.bytes) return;
    (*reaches)[t] = p.bytes;
    if (confidence != nullptr) (*confidence)[t] = p.confidence;
  });
}

}  // namespace

std::vector<Bytes> PredictReaches(const SeenPeriod& period, std::vector<double>* confidence) {
  const std::vector<std::vector<Bytes>> cuts = CutsOf(period);
  std::vector<Bytes> reaches(period.touches.size());
  for (size_t t = 0; t < reaches.size(); ++t) {
    const SeenTouch& touch = period.touches[t];
    const Bytes end = std::max(period.allocations[touch.allocation], touch.offset + 1);
    reaches[t] = touch.bytes > 0 ? std::min(touch.bytes, end - touch.offset)
                                 : ToNextCut(touch, cuts[touch.allocation], end);
  }
  std::map<Class, Votes> classes;
  ForEachUnknown(period, [&](const Class& of, uint32_t t, size_t) {
    classes[of].Add(period.touches[t], reaches[t]);
  });
  std::map<Class, Bytes> winners;
  for (const auto& [of, votes] : classes) {
    if (const Bytes reach = votes.Winner(); reach > 0) winners.emplace(of, reach);
  }
  ForEachUnknown(period, [&](const Class& of, uint32_t t, size_t) {
    const SeenTouch& touch = period.touches[t];
    const auto winner = winners.find(of);
    if (winner == winners.end() || touch.offset >= period.allocations[touch.allocation]) return;
    // Nothing says that an allocation with one pointer into it holds more than one object.
    if (winner->second < reaches[t] && cuts[touch.allocation].size() == 1) return;
    reaches[t] = std::min(winner->second, period.allocations[touch.allocation] - touch.offset);
  });
  if (confidence != nullptr) {
    confidence->assign(reaches.size(), 1);
    ForEachUnknown(period, [&](const Class& of, uint32_t t, size_t) {
      if (cuts[period.touches[t].allocation].size() == 1) return;
      (*confidence)[t] = classes.at(of).Confidence(reaches[t]);
    });
  }
  ApplyFits(period, winners, cuts, &reaches, confidence);
  return reaches;
}

Sight SplitAtTouches(const SeenPeriod& period, const std::vector<Bytes>& reaches, Bytes granule,
                     const std::vector<double>& confidence) {
  struct Extent {
    Bytes begin, end;
  };
  std::vector<Extent> extents(reaches.size());
  std::vector<std::vector<Bytes>> bounds(period.allocations.size());
  for (size_t t = 0; t < reaches.size(); ++t) {
    const SeenTouch& touch = period.touches[t];
    extents[t].begin = touch.offset / granule * granule;
    extents[t].end = (touch.offset + reaches[t] + granule - 1) / granule * granule;
    bounds[touch.allocation].push_back(extents[t].begin);
    bounds[touch.allocation].push_back(extents[t].end);
  }
  std::vector<std::vector<double>> touched(bounds.size());  // confidence of it; 0: not at all
  for (size_t a = 0; a < bounds.size(); ++a) {
    std::sort(bounds[a].begin(), bounds[a].end());
    bounds[a].erase(std::unique(bounds[a].begin(), bounds[a].end()), bounds[a].end());
    touched[a].resize(bounds[a].size());
  }
  const auto span = [&](size_t t) {  // pieces of the allocation, by their places in `bounds`
    const std::vector<Bytes>& list = bounds[period.touches[t].allocation];
    const auto place = [&](Bytes at) {
      return static_cast<size_t>(std::lower_bound(list.begin(), list.end(), at) - list.begin());
    };
    return std::make_pair(place(extents[t].begin), place(extents[t].end));
  };
  for (size_t t = 0; t < reaches.size(); ++t) {
    const auto [first, last] = span(t);
    std::vector<double>& sure = touched[period.touches[t].allocation];
    const double of_touch = t < confidence.size() ? confidence[t] : 1;
    for (size_t p = first; p < last; ++p) sure[p] = std::max(sure[p], of_touch);
  }

  Sight sight;
  std::vector<std::vector<uint32_t>> atom_of(bounds.size());
  for (uint32_t a = 0; a < bounds.size(); ++a) {
    atom_of[a].resize(bounds[a].size());
    for (size_t p = 0; p + 1 < bounds[a].size(); ++p) {
      if (touched[a][p] == 0) continue;
      atom_of[a][p] = static_cast<uint32_t>(sight.atoms.size());
      sight.atoms.push_back({a, bounds[a][p], bounds[a][p + 1] - bounds[a][p], touched[a][p]});
      Tensor tensor;
      tensor.bytes = sight.atoms.back().bytes;
      sight.trace.tensors.push_back(std::move(tensor));
    }
  }
  const auto tidy = [](std::vector<uint32_t>* list) {
    std::sort(list->begin(), list->end());
    list->erase(std::unique(list->begin(), list->end()), list->end());
  };
  sight.trace.launches.resize(period.launches.size());
  for (size_t i = 0; i < period.launches.size(); ++i) {
    const SeenLaunch& seen = period.launches[i];
    Launch& launch = sight.trace.launches[i];
    launch.seconds = seen.seconds;
    for (uint32_t t = seen.first_touch; t < seen.first_touch + seen.touch_count; ++t) {
      const auto [first, last] = span(t);
      const std::vector<uint32_t>& atoms = atom_of[period.touches[t].allocation];
      for (size_t p = first; p < last; ++p) {
        if (period.touches[t].reads) launch.reads.push_back(atoms[p]);
        if (period.touches[t].writes) launch.writes.push_back(atoms[p]);
      }
    }
    tidy(&launch.reads);
    tidy(&launch.writes);
  }
  return sight;
}

}  // namespace atp::policy
