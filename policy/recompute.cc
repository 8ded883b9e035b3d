// SPDX-License-Identifier: Apache-2.0
#include "policy/recompute.h"

#include <algorithm>
#include <utility>

#include "policy/lifetimes.h"

namespace atp::policy {
namespace {

bool Contains(const std::vector<uint32_t>& list, uint32_t value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

RecomputeSet::RecomputeSet(const Trace& trace, RecomputeOptions options)
    : trace_(trace),
      options_(std::move(options)),
      uses_(trace.tensors.size()),
      drops_(trace.tensors.size()),
      needed_by_(trace.tensors.size()) {
  for (uint32_t k = 0; k < trace.launches.size(); ++k) {
    for (bool writes : {false, true}) {
      const Launch& launch = trace.launches[k];
      for (uint32_t t : writes ? launch.writes : launch.reads) {
        if (t >= uses_.size()) continue;
        if (uses_[t].empty() || uses_[t].back().launch != k) uses_[t].push_back({k, false, false});
        (writes ? uses_[t].back().writes : uses_[t].back().reads) = true;
      }
    }
  }
  for (uint32_t k = 0; k < options_.unsure.size(); ++k) {
    unsure_.push_back((k == 0 ? 0 : unsure_[k - 1]) + (options_.unsure[k] ? 1 : 0));
  }
  FindCandidates();
}

const RecomputeSet::Use* RecomputeSet::LastBefore(uint32_t tensor, uint32_t launch,
                                                  bool writing) const {
  const auto& uses = uses_[tensor];
  auto it = std::lower_bound(uses.begin(), uses.end(), launch,
                             [](const Use& use, uint32_t at) { return use.launch < at; });
  while (it != uses.begin()) {
    --it;
    if (!writing || it->writes) return &*it;
  }
  return nullptr;
}

// No launch between the two writes it.
bool RecomputeSet::Unchanged(uint32_t tensor, uint32_t since, uint32_t until) const {
  const Use* write = LastBefore(tensor, until, /*writing=*/true);
  return write == nullptr || write->launch <= since;
}

// No launch behind `since`, up to `until`, is one that nobody is certain of.
bool RecomputeSet::Certain(uint32_t since, uint32_t until) const {
  return unsure_.empty() || (until < unsure_.size() && unsure_[since] == unsure_[until]);
}

// It holds data just before the launch, that somebody will read.
bool RecomputeSet::Alive(uint32_t tensor, uint32_t launch) const {
  if (trace_.tensors[tensor].global) return true;
  const auto& uses = uses_[tensor];
  const auto next = std::lower_bound(uses.begin(), uses.end(), launch,
                                     [](const Use& use, uint32_t at) { return use.launch < at; });
  return next != uses.end() && next->reads;
}

bool RecomputeSet::Dropped(uint32_t tensor, uint32_t launch) const {
  return std::any_of(drops_[tensor].begin(), drops_[tensor].end(), [&](size_t i) {
    return chosen_[i].last_use < launch && launch <= chosen_[i].next_use;
  });
}

// The launch that made what the tensor holds before launch `use`, if that may run again then.
std::optional<uint32_t> RecomputeSet::Producer(uint32_t tensor, uint32_t use) const {
  const Use* made = LastBefore(tensor, use, /*writing=*/true);
  if (made == nullptr || made->reads) return std::nullopt;  // updated in place
  const uint32_t k = made->launch;
  const auto& may = options_.may_run_again;
  if (!may.empty() && (k >= may.size() || !may[k])) return std::nullopt;
  if (!Certain(k, use)) return std::nullopt;
  const Launch& launch = trace_.launches[k];
  for (uint32_t input : launch.reads) {
    if (input >= uses_.size() || Contains(launch.writes, input)) return std::nullopt;
    if (!Unchanged(input, k, use)) return std::nullopt;
  }
  for (uint32_t other : launch.writes) {  // what lives across periods is written where it lies
    if (other >= uses_.size()) return std::nullopt;
    if (trace_.tensors[other].global && !Unchanged(other, k, use)) return std::nullopt;
  }
  return k;
}

// Adds to the chain what must run so that the tensor is there before launch `use`.
bool RecomputeSet::Extend(uint32_t tensor, uint32_t use, uint32_t depth, Chain* chain) const {
  const auto producer = Producer(tensor, use);
  if (!producer || depth > options_.longest_chain) return false;
  chain->seconds += trace_.launches[*producer].seconds;
  if (++chain->length > options_.longest_chain) return false;
  for (uint32_t input : trace_.launches[*producer].reads) {
    if (Alive(input, use) && !Dropped(input, use)) {
      chain->kept.push_back(input);
    } else if (!Extend(input, use, depth + 1, chain)) {
      return false;
    }
  }
  return true;
}

void RecomputeSet::FindCandidates() {
  for (const InactiveInterval& i : FindLifetimes(trace_).intervals) {
    Chain chain;
    if (i.next_use >= trace_.launches.size() || !Extend(i.tensor, i.next_use, 1, &chain)) continue;
    candidates_.push_back({i.tensor, i.last_use, i.next_use, *Producer(i.tensor, i.next_use),
                           chain.seconds, i.bytes});
  }
  std::stable_sort(candidates_.begin(), candidates_.end(),
                   [](const auto& a, const auto& b) { return a.Efficiency() > b.Efficiency(); });
}

void RecomputeSet::Depend(size_t chosen, const Chain& chain) {
  for (uint32_t input : chain.kept) needed_by_[input].push_back(chosen);
}

bool RecomputeSet::Add(const Recomputation& candidate) {
  const size_t index = chosen_.size();
  chosen_.push_back(candidate);
  drops_[candidate.tensor].push_back(index);
  std::vector<std::pair<size_t, Chain>> chains;  // of those that will not find it there any more
  std::vector<size_t> again{index};
  for (size_t i : needed_by_[candidate.tensor]) {
    if (i < chosen_.size() && Dropped(candidate.tensor, chosen_[i].next_use)) again.push_back(i);
  }
  for (size_t i : again) {
    chains.emplace_back(i, Chain{});
    if (Extend(chosen_[i].tensor, chosen_[i].next_use, 1, &chains.back().second)) continue;
    Forget();
    return false;
  }
  for (const auto& [i, chain] : chains) Depend(i, chain);
  return true;
}

void RecomputeSet::Forget() {
  drops_[chosen_.back().tensor].pop_back();
  chosen_.pop_back();
}

void RecomputeSet::Shrink(size_t count) {
  while (chosen_.size() > count) Forget();
  for (auto& list : needed_by_) std::erase_if(list, [&](size_t i) { return i >= count; });
}

// Builds the new trace launch by launch.
class Reruns {
 public:
  explicit Reruns(const RecomputeSet& set) : set_(set), old_(set.trace_) {}

  Recomputed Build() {
    result_.trace = old_;
    result_.trace.launches.clear();
    absent_.assign(old_.tensors.size(), kPresent);
    made_for_.assign(old_.tensors.size(), kPresent);
    std::vector<std::vector<uint32_t>> after(old_.launches.size());  // tensors dropped then
    for (const Recomputation& r : set_.chosen_) after[r.last_use].push_back(r.tensor);
    for (uint32_t k = 0; k < old_.launches.size(); ++k) {
      const Launch& launch = old_.launches[k];
      for (const auto* list : {&launch.reads, &launch.writes}) {
        for (uint32_t t : *list) {
          if (t < absent_.size() && absent_[t] != kPresent) Restore(t, k);
        }
      }
      result_.new_position.push_back(Here());
      result_.trace.launches.push_back(launch);
      for (uint32_t t : after[k]) absent_[t] = Here() - 1;
    }
    return std::move(result_);
  }

 private:
  static constexpr uint32_t kPresent = UINT32_MAX;  // and made for none

  uint32_t Here() const { return static_cast<uint32_t>(result_.trace.launches.size()); }

  void Restore(uint32_t tensor, uint32_t before) {
    const uint32_t producer = *set_.Producer(tensor, before);
    for (uint32_t input : old_.launches[producer].reads) {
      const bool here = made_for_[input] == before || set_.Alive(input, before);
      if (absent_[input] != kPresent || !here) Restore(input, before);
    }
    Launch launch = old_.launches[producer];
    launch.name = "recompute:" + launch.name;
    launch.writes.clear();
    Rerun rerun{Here(), producer, before, {}};
    made_for_[tensor] = before;
    for (uint32_t t : old_.launches[producer].writes) {
      if (Contains(launch.writes, t)) continue;
      const bool absent = absent_[t] != kPresent && set_.Unchanged(t, producer, before);
      if (t == tensor || absent) {
        rerun.restores.push_back(t);
        if (absent) Bring(t);
      } else if (!old_.tensors[t].global) {
        launch.workspace += old_.tensors[t].bytes;  // thrown away
        continue;
      }
      launch.writes.push_back(t);
    }
    launch.restores = rerun.restores;
    result_.seconds += launch.seconds;
    result_.trace.launches.push_back(std::move(launch));
    result_.reruns.push_back(std::move(rerun));
  }

  void Bring(uint32_t tensor) {
    const Bytes bytes = old_.tensors[tensor].bytes;
    result_.drops.push_back({tensor, absent_[tensor], Here(), bytes});
    result_.bytes += bytes;
    absent_[tensor] = kPresent;
  }

  const RecomputeSet& set_;
  const Trace& old_;
  Recomputed result_;
  std::vector<uint32_t> absent_;    // per tensor: the launch of the new trace it was dropped after
  std::vector<uint32_t> made_for_;  // per tensor: the launch of the old trace it was last made for
};

Recomputed RecomputeSet::Apply() const { return Reruns(*this).Build(); }

Folded FoldReruns(const Recomputed& made) {
  Folded folded;
  folded.trace = made.trace;
  folded.trace.launches.clear();
  std::vector<uint32_t> old(made.trace.launches.size(), UINT32_MAX);
  for (uint32_t k = 0; k < made.new_position.size(); ++k) {
    old[made.new_position[k]] = k;
    folded.trace.launches.push_back(made.trace.launches[made.new_position[k]]);
  }
  const auto add = [](uint32_t tensor, std::vector<uint32_t>* list) {
    if (!Contains(*list, tensor)) list->push_back(tensor);
  };
  for (const Rerun& rerun : made.reruns) {
    const Launch& again = made.trace.launches[rerun.position];
    Launch& launch = folded.trace.launches[rerun.before];
    for (uint32_t t : again.reads) add(t, &launch.reads);
    for (uint32_t t : again.writes) add(t, &launch.writes);
    for (uint32_t t : again.restores) add(t, &launch.restores);
    launch.seconds += again.seconds;
    launch.workspace = std::max(launch.workspace, again.workspace);
    for (const Drop& drop : made.drops) {
      if (drop.before != rerun.position) continue;
      folded.drops.push_back(
          {drop.tensor, rerun.producer, old[drop.after], rerun.before, drop.bytes});
    }
  }
  return folded;
}

}  // namespace atp::policy
