// SPDX-License-Identifier: Apache-2.0
#include "shim/mover.h"

#include <algorithm>

namespace atp::shim {

uint64_t PieceBytes(uint64_t budget) {
  return std::clamp(budget / 64 / kGranule * kGranule, kGranule, kPieceBytes);
}

namespace {

bool TakesRoom(const Action& action) { return !action.touch && !action.in_place; }
// Only such moves say something about the link.
bool Copies(const Action& action) { return TakesRoom(action) && action.drop == 0; }

}  // namespace

class EvictMover : public Mover {
 public:
  EvictMover(Traffic* traffic, unsigned index) : t_(traffic), index_(index) {}
  const char* name() const override {
    static constexpr std::array<const char*, kEvictMovers> kNames = {"atp-evict-0", "atp-evict-1",
                                                                     "atp-evict-2", "atp-evict-3"};
    return kNames[index_];
  }

  Poll Look() override {
    if (!t_->active() || index_ >= t_->evict_movers_) return {};
    if (!holding_) {
      if (!HasNext()) return {};
      holding_ = true;
      sequence_ = t_->evict_next_++;
      waited_ = 0;
    }
    const LaunchMark* mark = MarkOf(sequence_);
    if (mark == nullptr) return {};  // its launch has not been submitted yet
    if (waited_ < mark->count) {
      waits_in_ = t_->generation_;
      return {Poll::Kind::kEvent, mark->events[waited_]};
    }
    if (t_->PutOff(sequence_)) return {};
    return {Poll::Kind::kReady};
  }

  void OnEvent(CUevent) override {
    if (waits_in_ == t_->generation_) ++waited_;
  }

  void Act(std::unique_lock<std::mutex>& lock) override {
    uint64_t flag = 0;
    action_ = t_->EvictAt(sequence_, &flag);
    if (action_.drop != 0) return GiveUp(lock);
    calling_ = true;
    const uint64_t address = action_.allocation->address + action_.offset;
    const bool duplicated =
        action_.clean && t_->observer_ != nullptr && t_->observer_->IsDuplicated(action_);
    if (action_.clean) SetReadMostly(action_.allocation, true);
    lock.unlock();
    begin_ns_ = t_->port().NowNs();
    result_ = action_.clean ? t_->port().Drop(index_, address, action_.bytes, duplicated)
                            : t_->port().Evict(index_, address, action_.bytes);
    end_ns_ = t_->port().NowNs();
    lock.lock();
  }

  void Finish() override {
    calling_ = false;
    if (giving_up_) {
      giving_up_ = false;
      t_->observer_->Dropped(action_);
    }
    if (!holding_) {  // the schedule has ended meanwhile; the range has left all the same
      if (result_ == CUDA_SUCCESS) t_->Moved(action_, /*to_device=*/false);
      return;
    }
    holding_ = false;
    // Room is counted as free even when the driver refused: the fetch that follows counts it again,
    // and an account that only grows would stop all fetches in the end.
    const bool first = sequence_ < t_->evict_first_.size();
    if (!first) t_->resident_ -= std::min(action_.bytes, t_->resident_);
    if (result_ != CUDA_SUCCESS) return t_->Failed();
    t_->Moved(action_, /*to_device=*/false);
    // What may have been on the host already says nothing about the link, nor does a call that
    // gives advice as well.
    if (first || action_.clean || action_.drop != 0) return;
    t_->meter_.Moved(/*to_device=*/false, begin_ns_, end_ns_, action_.bytes);
  }

  void Abandon() { holding_ = false; }
  // Until the next period nobody needs what the range holds; or it just stays where it is.
  void GiveUp(std::unique_lock<std::mutex>& lock) {
    result_ = CUDA_SUCCESS;
    const uint64_t at = sequence_ - t_->evict_first_.size();
    giving_up_ = t_->observer_ != nullptr &&
                 t_->observer_->BeginDrop(action_, at / t_->schedule_->evicts.size());
    if (!giving_up_) return;
    calling_ = true;
    lock.unlock();
    result_ =
        t_->port().Discard(index_, action_.allocation->address + action_.offset, action_.bytes);
    lock.lock();
  }
  bool calling() const { return calling_; }
  bool holding() const { return holding_; }
  uint64_t sequence() const { return sequence_; }

 private:
  bool HasNext() const {
    return t_->evict_next_ < t_->evict_first_.size() || !t_->schedule_->evicts.empty();
  }
  const LaunchMark* MarkOf(uint64_t sequence) const {
    uint64_t flag = 0;
    t_->EvictAt(sequence, &flag);
    if (sequence < t_->evict_first_.size()) return &t_->start_mark_;
    return flag < t_->marks_recorded_ ? &t_->marks_[flag % t_->marks_.size()] : nullptr;
  }

  Traffic* t_;
  unsigned index_;
  Action action_;
  CUresult result_ = CUDA_SUCCESS;
  uint64_t begin_ns_ = 0, end_ns_ = 0;
  bool holding_ = false;
  bool calling_ = false;
  bool giving_up_ = false;  // inside the driver for what is dropped
  uint64_t sequence_ = 0;
  unsigned waited_ = 0;
  uint64_t waits_in_ = 0;  // generation of the schedule whose event is waited for
};

class FetchMover : public Mover {
 public:
  explicit FetchMover(Traffic* traffic) : t_(traffic) {}
  const char* name() const override { return "atp-fetch"; }

  Poll Look() override {
    if (!t_->active()) return {};
    if (!t_->FetchMayGo()) return {};
    const Action& action = t_->NextFetch();
    const bool full = t_->in_flight_.size() == kFetchStreams ||
                      t_->in_flight_bytes_ + action.bytes > kMaxInFlight;
    if (full && !t_->in_flight_.empty()) {
      waits_in_ = t_->generation_;
      return {Poll::Kind::kEvent, t_->in_flight_.front().done};
    }
    return {Poll::Kind::kReady};
  }

  void OnEvent(CUevent) override {
    if (waits_in_ != t_->generation_) return;
    arrived_ = t_->in_flight_.front();
    t_->in_flight_bytes_ -= arrived_.bytes;
    t_->in_flight_.pop_front();
  }

  void Act(std::unique_lock<std::mutex>& lock) override {
    ClockArrived();
    action_ = t_->NextFetch();
    count_ = 1;
    while (Joins(t_->fetch_issued_ + count_)) {
      action_.bytes += t_->FetchAt(t_->fetch_issued_ + count_++).bytes;
    }
    Traffic::FetchCall& call = t_->fetch_calls_[t_->calls_ % Traffic::kFetchCalls];
    if (call.done == nullptr) call.done = t_->port().NewEvent();
    event_ = call.done;
    call.first = t_->fetch_issued_;
    const unsigned stream = t_->fetch_stream_++ % kFetchStreams;
    // Room is taken from the start of the move.
    if (TakesRoom(action_)) t_->resident_ += action_.bytes;
    calling_ = true;
    lock.unlock();
    begin_ns_ = Copies(action_) ? t_->port().NowNs() : 0;  // the others may copy nothing
    result_ = t_->port().Fetch(stream, action_.allocation->address + action_.offset, action_.bytes,
                               event_);
    lock.lock();
  }

  void Finish() override {
    calling_ = false;
    if (dropped_) {  // the schedule has ended meanwhile; the range is on its way all the same
      dropped_ = false;
      if (result_ == CUDA_SUCCESS && !action_.touch) t_->Moved(action_, /*to_device=*/true);
      return;
    }
    t_->fetch_issued_ += count_;
    ++t_->calls_;
    t_->SkipTouches();
    if (result_ != CUDA_SUCCESS) return t_->Failed();
    const uint64_t copied = action_.touch ? 0 : action_.bytes;
    t_->in_flight_.push_back({event_, copied, begin_ns_});
    t_->in_flight_bytes_ += copied;
    if (!action_.touch) t_->Moved(action_, /*to_device=*/true);
  }

  void Abandon() { dropped_ = calling_; }
  bool calling() const { return calling_; }

 private:
  // A call costs the driver as much as a granule, and whatever waits for its lock. While there is
  // room for more, what continues the range goes with it: fast links are kept busy so.
  bool Joins(uint64_t sequence) const {
    if (sequence >= t_->first_fetches_.size() && t_->schedule_->fetches.empty()) return false;
    const Action& next = t_->FetchAt(sequence);
    const uint64_t bytes = action_.bytes + next.bytes;
    return TakesRoom(action_) && TakesRoom(next) && next.allocation == action_.allocation &&
           next.offset == action_.offset + action_.bytes && next.position == action_.position &&
           next.clean == action_.clean && bytes <= PieceBytes(t_->capacity_) &&
           t_->resident_ + bytes <= t_->room_ && t_->in_flight_bytes_ + bytes <= kMaxInFlight &&
           t_->PeriodOfFetch(sequence) == t_->PeriodOfFetch(t_->fetch_issued_) &&
           !t_->PartnerStaying(sequence);
  }

  // Here and not in OnEvent, because this mover has to pay for the question.
  void ClockArrived() {
    if (arrived_.begin_ns == 0) return;
    const uint64_t end = t_->port().DoneAtNs(arrived_.done);
    if (end > 0) t_->meter_.Moved(/*to_device=*/true, arrived_.begin_ns, end, arrived_.bytes);
    arrived_.begin_ns = 0;
  }

  Traffic* t_;
  Action action_;
  uint64_t count_ = 0;           // fetches that it is made of
  Traffic::InFlight arrived_{};  // the last one, until it has been clocked
  uint64_t begin_ns_ = 0;
  CUevent event_ = nullptr;
  CUresult result_ = CUDA_SUCCESS;
  bool calling_ = false;
  bool dropped_ = false;
  uint64_t waits_in_ = 0;  // generation of the schedule whose event is waited for
};

namespace {

bool Earlier(const Action& a, const Action& b) { return a.position < b.position; }

// A touch costs the driver about 15 us a call and 3 us a granule (estimates); it should cost less
// than one part in 200 of the period.
uint64_t TouchEvery(const Schedule& schedule) {
  constexpr double kSecondsPerCall = 15e-6, kSecondsPerGranule = 3e-6, kShare = 1.0 / 200;
  double cost = 0;
  for (const Action& f : schedule.fetches) {
    if (f.touch)
      cost += kSecondsPerCall + static_cast<double>(f.bytes / kGranule) * kSecondsPerGranule;
  }
  return 1 + static_cast<uint64_t>(cost / (std::max(schedule.promise_seconds, 1e-6) * kShare));
}

}  // namespace

void Traffic::Activate(std::shared_ptr<const Schedule> schedule, std::vector<Action> evict_first,
                       std::vector<Action> fetch_first, uint64_t resident) {
  Deactivate();
  schedule_ = std::move(schedule);
  evict_first_ = std::move(evict_first);
  MakeFirstFetches(std::move(fetch_first));
  resident_ = resident;
  touch_every_ = TouchEvery(*schedule_);
  // Two periods of marks: the program may run ahead of the movers by one.
  marks_.resize(std::max<size_t>(marks_.size(), 2 * std::max(1u, schedule_->flagged)));
}

void Traffic::Deactivate() {
  ++generation_;
  schedule_.reset();
  evict_first_.clear();
  first_fetches_.clear();
  evict_next_ = fetch_issued_ = fetch_needed_ = marks_recorded_ = 0;
  calls_ = needed_calls_ = 0;
  in_flight_.clear();
  in_flight_bytes_ = 0;
  for (unsigned i = 0; i < kEvictMovers && i < movers_.size(); ++i) {
    static_cast<EvictMover*>(movers_[i].get())->Abandon();
  }
  if (!movers_.empty()) static_cast<FetchMover*>(movers_.back().get())->Abandon();
}

bool Traffic::Quiet() const {
  for (unsigned i = 0; i < kEvictMovers && i < movers_.size(); ++i) {
    if (static_cast<const EvictMover*>(movers_[i].get())->calling()) return false;
  }
  return movers_.empty() || !static_cast<const FetchMover*>(movers_.back().get())->calling();
}

bool Traffic::Uses(const Allocation* allocation) const {
  if (!active()) return false;
  const auto is = [&](const auto& range) { return range.allocation == allocation; };
  return std::any_of(schedule_->tensors.begin(), schedule_->tensors.end(), is) ||
         (EvictsDone() < evict_first_.size() &&
          std::any_of(evict_first_.begin(), evict_first_.end(), is));
}

void Traffic::MakeFirstFetches(std::vector<Action> fetch_first) {
  const std::vector<Action>& list = schedule_->fetches;
  std::stable_sort(fetch_first.begin(), fetch_first.end(), Earlier);
  // In front of those of the same position: touches among them expect everything in its place.
  first_fetches_.resize(fetch_first.size() + list.size());
  std::merge(fetch_first.begin(), fetch_first.end(), list.begin(), list.end(),
             first_fetches_.begin(), Earlier);
  first_cut_ = schedule_->fetch_cut;
  size_t before = 0;
  for (uint32_t position = 0; position < first_cut_.size(); ++position) {
    while (before < fetch_first.size() && fetch_first[before].position <= position) ++before;
    first_cut_[position] += static_cast<uint32_t>(before);
  }
}

const std::vector<uint32_t>& Traffic::FetchCut(uint64_t period) const {
  return period == 0 ? first_cut_ : schedule_->fetch_cut;
}

uint64_t Traffic::Need(uint64_t period, uint32_t position, bool* news) {
  const uint64_t needed = fetch_needed_, issued = fetch_issued_;
  fetch_needed_ = FetchCut(period)[position];
  if (period > 0) fetch_needed_ += first_fetches_.size() + (period - 1) * schedule_->fetches.size();
  SkipTouches();
  if (news != nullptr) *news = fetch_needed_ != needed || fetch_issued_ != issued;
  return fetch_needed_;
}

bool Traffic::HasFetches(uint64_t period, uint32_t position) const {
  const std::vector<uint32_t>& cut = FetchCut(period);
  return cut[position] > (position == 0 ? 0 : cut[position - 1]);
}

uint64_t Traffic::PeriodOfFetch(uint64_t sequence) const {
  const uint64_t first = first_fetches_.size();
  return sequence < first ? 0 : 1 + (sequence - first) / schedule_->fetches.size();
}

const Action& Traffic::FetchAt(uint64_t sequence) const {
  const uint64_t first = first_fetches_.size();
  if (sequence < first) return first_fetches_[sequence];
  return schedule_->fetches[(sequence - first) % schedule_->fetches.size()];
}

// True while the eviction that a fetch brings back has not left yet, or what leaves before the
// first period.
bool Traffic::PartnerStaying(uint64_t fetch) const {
  const Action& action = FetchAt(fetch);
  const uint64_t done = EvictsDone(), first = evict_first_.size();
  if (done < first) return true;
  if (action.partner == Action::kNoPartner) return false;
  uint64_t period = PeriodOfFetch(fetch);
  if (action.partner_in_previous_period) {
    if (period == 0) return false;
    --period;
  }
  return done <= first + period * schedule_->evicts.size() + action.partner;
}

// But for how much is in flight.
bool Traffic::FetchMayGo() const {
  if (fetch_issued_ >= first_fetches_.size() && schedule_->fetches.empty()) return false;
  const Action& action = NextFetch();
  const bool room = !TakesRoom(action) || resident_ + action.bytes <= room_;
  // The event ring is reused: never overtake what the program may still have to wait for.
  const bool known = fetch_issued_ < fetch_needed_ + kFetchCalls / 2;
  return room && known && !PartnerStaying(fetch_issued_);
}

// The plan has fetches go before this eviction, and the next one can: it is never put off while all
// wait for it.
bool Traffic::PutOff(uint64_t evict) const {
  if (evict < evict_first_.size()) return false;
  const uint64_t at = evict - evict_first_.size(), period = at / schedule_->evicts.size();
  if (period == 0) return false;  // it has fetches of its own
  const uint64_t before = first_fetches_.size() + (period - 1) * schedule_->fetches.size();
  return fetch_issued_ < before + schedule_->behind[at % schedule_->evicts.size()] && FetchMayGo();
}

// Touches cost driver time: in most periods they are left out when they would be a burden. Called
// where the program or the fetch mover makes its next step, never while a mover only looks: whoever
// waits for fetches is woken after those steps.
void Traffic::SkipTouches() {
  while (!schedule_->fetches.empty() && NextFetch().touch &&
         PeriodOfFetch(fetch_issued_) % touch_every_ != 0 &&
         fetch_issued_ < fetch_needed_ + kFetchCalls / 2) {
    ++fetch_issued_;
  }
}

Traffic::FetchEvents Traffic::LastFetches(uint64_t needed) {
  FetchEvents last;
  if (!active()) return last;
  while (needed_calls_ < calls_ && fetch_calls_[needed_calls_ % kFetchCalls].first < needed) {
    ++needed_calls_;
  }
  for (uint64_t n = needed_calls_; n > 0 && needed_calls_ - n < kFetchStreams; --n) {
    if (calls_ >= n + kFetchCalls) break;  // its event has been used again
    const CUevent event = fetch_calls_[(n - 1) % kFetchCalls].done;
    if (event != nullptr) last.events[last.count++] = event;
  }
  return last;
}

bool Traffic::MarkFree(uint64_t flag_sequence) const {
  if (flag_sequence < marks_.size()) return true;
  const uint64_t sequence = EvictsDone();
  if (sequence < evict_first_.size()) return false;
  // The oldest mark that an eviction in hand or still to come reads.
  const uint64_t at = sequence - evict_first_.size();
  const uint64_t oldest = at / schedule_->evicts.size() * schedule_->flagged +
                          schedule_->oldest_flag[at % schedule_->evicts.size()];
  return oldest + marks_.size() > flag_sequence;
}

const Action& Traffic::EvictAt(uint64_t sequence, uint64_t* flag_sequence) const {
  if (sequence < evict_first_.size()) return evict_first_[sequence];
  const uint64_t at = sequence - evict_first_.size();
  const Action& action = schedule_->evicts[at % schedule_->evicts.size()];
  *flag_sequence =
      at / schedule_->evicts.size() * schedule_->flagged + schedule_->flag_index[action.position];
  return action;
}

uint64_t Traffic::EvictsDone() const {
  uint64_t done = evict_next_;
  for (unsigned i = 0; i < kEvictMovers && i < movers_.size(); ++i) {
    const auto* mover = static_cast<const EvictMover*>(movers_[i].get());
    if (mover->holding()) done = std::min(done, mover->sequence());
  }
  return done;
}

void Traffic::Moved(const Action& action, bool to_device) {
  if (action.drop != 0) {
    if (observer_ != nullptr) observer_->OnMoved(action, to_device);
    return;
  }
  ++(to_device ? counters_.fetch_calls : counters_.evict_calls);
  (to_device ? counters_.fetch_bytes : counters_.evict_bytes) += action.bytes;
  if (observer_ != nullptr) observer_->OnMoved(action, to_device);
}

void Traffic::Failed() {
  // A hint that fails costs a fault, nothing else; a driver that refuses them is not asked for
  // ever.
  constexpr uint64_t kTooMany = 8;
  if (++counters_.errors >= kTooMany) Deactivate();
}

std::vector<Mover*> Traffic::movers() {
  if (movers_.empty()) {
    for (unsigned i = 0; i < kEvictMovers; ++i) {
      movers_.push_back(std::make_unique<EvictMover>(this, i));
    }
    movers_.push_back(std::make_unique<FetchMover>(this));
  }
  std::vector<Mover*> list;
  for (auto& m : movers_) list.push_back(m.get());
  return list;
}

}  // namespace atp::shim
