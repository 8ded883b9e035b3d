// SPDX-License-Identifier: Apache-2.0
#include "daemon/tuning.h"

#include <utility>

#include "daemon/log.h"

namespace atp::daemon {

using protocol::Learned;
using protocol::TrialState;

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
  const bool offered = stored->trial == TrialState::kOffered;
  const bool decided = offered && tried == stored->candidate &&
                       (said == TrialState::kWon || said == TrialState::kLost);
  if (decided) {
    const bool won = said == TrialState::kWon;
    told->tuning = won ? stored->candidate : stored->tuning;
    if (!won) {  // so that it is not offered again
      told->candidate = tried;
      told->trial = TrialState::kLost;
    }
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
  Store::Decision decision{0, found.better ? "offered" : "nothing better", found.before_seconds,
                           found.after_seconds, found.reason};
  if (found.better) {
    const auto bytes = store_.Get(job_.user, job_.id);  // as it is now
    Learned learned;
    std::string error;
    if (!bytes || !protocol::Read(*bytes, &learned, &error)) return;
    if (learned.tuning != from_) return;  // a trial has ended meanwhile
    if (learned.trial == TrialState::kLost && learned.candidate == found.tuning) {
      decision.what = "nothing better";
      decision.reason += ", but a live job was no faster by it";
      return store_.Decide(job_.id, decision);
    }
    learned.candidate = found.tuning;
    learned.trial = TrialState::kOffered;
    if (!store_.Replace(job_.id, protocol::Write(learned))) return;
    ++counters_.offered;
  }
  store_.Decide(job_.id, decision);
}

}  // namespace atp::daemon
