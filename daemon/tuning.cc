// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuning.h"

#include <algorithm>
#include <utility>

#include "daemon/log.h"

namespace atp::daemon {

using protocol::Learned;
using protocol::TrialState;

namespace {

bool Contains(const std::vector<protocol::Tuning>& list, const protocol::Tuning& tuning) {
  return std::find(list.begin(), list.end(), tuning) != list.end();
}

// One candidate a run: the next of those that a search has found.
void OfferNext(Learned* learned) {
  constexpr size_t kMostRejected = 64;
  while (learned->rejected.size() > kMostRejected) {
    learned->rejected.erase(learned->rejected.begin());
  }
  learned->candidate = {};
  learned->trial = TrialState::kNone;
  if (learned->further.empty()) return;
  learned->candidate = learned->further.front();
  learned->further.erase(learned->further.begin());
  learned->trial = TrialState::kOffered;
}

}  // namespace

void MergeTuning(const Learned* stored, Learned* told, Store::Decision* decision) {
  decision->what.clear();
  const TrialState said = std::exchange(told->trial, TrialState::kNone);
  const protocol::Tuning tried = std::exchange(told->candidate, {});
  const bool same =
      stored != nullptr && stored->fingerprint.capacity_bytes == told->fingerprint.capacity_bytes;
  if (!same) {  // choices are for a budget
    if (said != TrialState::kNone) told->tuning = {};
    return;
  }
  told->further = stored->further;
  told->rejected = stored->rejected;
  const bool offered = stored->trial == TrialState::kOffered;
  const bool decided = offered && tried == stored->candidate &&
                       (said == TrialState::kWon || said == TrialState::kLost);
  if (decided) {
    const bool won = said == TrialState::kWon;
    told->tuning = won ? stored->candidate : stored->tuning;
    if (!won) told->rejected.push_back(tried);  // so that it is not offered again
    OfferNext(told);
    *decision = {0, won ? "kept" : "rejected", told->before_seconds, told->trial_seconds,
                 won ? "the live job was faster by it" : "the live job was no faster by it"};
    return;
  }
  if (stored->tuning != protocol::Tuning{}) told->tuning = stored->tuning;
  told->candidate = stored->candidate;
  told->trial = stored->trial;
}

void Tuning::Set(const TuningOptions& options) {
  options_ = options;
  if (!options_.on) tuner_.Stop();
}

void Tuning::Tick(Clock::time_point now) {
  if (const auto found = tuner_.Take()) End(*found);
  if (!options_.on || tuner_.busy() || now - last_ < options_.idle) return;
  auto next = store_.NextToTune();
  if (!next) return;
  job_ = std::move(*next);
  Learned learned;
  std::string error;
  const bool good = protocol::Read(job_.learned, &learned, &error);
  if (!good || learned.trial == TrialState::kOffered) return store_.Searched(job_);
  SearchOptions search;
  search.costs = options_.costs;
  ++counters_.searches;
  from_ = learned.tuning;
  tuner_.Start(std::move(learned), std::move(search), {options_.share, options_.nice});
}

void Tuning::End(const Found& found) {
  store_.Searched(job_);
  Store::Decision decision{0, "nothing better", found.before_seconds, found.after_seconds,
                           found.reason};
  if (!found.better.empty()) {
    const auto bytes = store_.Get(job_.user, job_.id);  // as it is now
    Learned learned;
    std::string error;
    if (!bytes || !protocol::Read(*bytes, &learned, &error)) return;
    if (learned.tuning != from_) return;  // a trial has ended meanwhile
    learned.further = found.better;
    std::erase_if(learned.further,
                  [&](const auto& tuning) { return Contains(learned.rejected, tuning); });
    const size_t offers = learned.further.size();
    OfferNext(&learned);
    if (offers == 0) {
      decision.reason += ", but a live job was no faster by it";
      return store_.Decide(job_.id, decision);
    }
    if (!store_.Replace(job_.id, protocol::Write(learned))) return;
    decision.what = "offered";
    if (offers > 1) decision.reason += ", and " + std::to_string(offers - 1) + " more";
    ++counters_.offered;
  }
  store_.Decide(job_.id, decision);
}

}  // namespace atp::daemon
