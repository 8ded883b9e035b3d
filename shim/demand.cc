// SPDX-License-Identifier: Apache-2.0
#include "shim/demand.h"

#include <algorithm>
#include <utility>

namespace atp::shim {

class Demand::EvictMover : public Mover {
 public:
  EvictMover(Demand* demand, unsigned index) : d_(demand), index_(index) {}
  const char* name() const override { return "atp-evict"; }

  Poll Look() override {
    if (!holding_) {
      if (d_->evicts_.empty()) return {};
      move_ = d_->evicts_.front();
      d_->evicts_.pop_front();
      number_ = d_->evicts_begun_++;
      holding_ = true;
      passed_ = false;
    }
    if (!d_->IsPassed(move_.after)) return {};  // its last user has not been submitted yet
    const Mark& mark = d_->marks_[move_.after % kMarks];
    awaited_fetch_ = 0;
    if (!passed_ && mark.event != nullptr) return {Poll::Kind::kEvent, mark.event};
    return move_.ahead ? BehindFetches() : Poll{Poll::Kind::kReady};
  }

  void OnEvent(CUevent event) override {
    if (awaited_fetch_ > 0) {
      d_->arrived_ = std::max(d_->arrived_, awaited_fetch_);
    } else {
      passed_ |= holding_ && event == d_->marks_[move_.after % kMarks].event;
    }
  }

  void Act(std::unique_lock<std::mutex>& lock) override {
    Action& action = move_.action;
    if (action.allocation == nullptr) return;
    const bool duplicated = action.clean && d_->observer_->IsDuplicated(action);
    if (action.clean) SetReadMostly(action.allocation, true);
    const uint64_t address = action.allocation->address + action.offset;
    calling_ = true;
    lock.unlock();
    result_ = action.clean ? d_->port_->Drop(index_, address, action.bytes, duplicated)
                           : d_->port_->Evict(index_, address, action.bytes);
    lock.lock();
  }

  void Finish() override {
    calling_ = holding_ = false;
    if (move_.action.allocation == nullptr) return;
    if (result_ != CUDA_SUCCESS) return d_->Failed();
    d_->counters_.evicted += move_.action.bytes;
    d_->observer_->OnMoved(move_.action, /*to_device=*/false);
  }

  void Abandon() { holding_ = calling_; }
  void Forget(const Allocation* allocation) {
    if (!calling_ && move_.action.allocation == allocation) move_.action.allocation = nullptr;
  }
  bool calling() const { return calling_; }
  bool holding() const { return holding_; }
  uint64_t number() const { return number_; }

 private:
  // A copy out takes from what launches wait for, on many links half of it. It goes when they have
  // all they lacked, or when one waits for its very room.
  Poll BehindFetches() {
    if (d_->RoomIsAwaited()) return {Poll::Kind::kReady};
    const CUevent last = d_->issued_ > 0 ? d_->events_[(d_->issued_ - 1) % kEvents] : nullptr;
    if (d_->arrived_ < d_->issued_ && last != nullptr) {
      awaited_fetch_ = d_->issued_;
      return {Poll::Kind::kEvent, last};
    }
    if (!d_->fetches_.empty()) return {};
    return {Poll::Kind::kReady};
  }

  Demand* d_;
  unsigned index_;
  Move move_;
  uint64_t number_ = 0;
  uint64_t awaited_fetch_ = 0;  // what the event that it waits for stands behind; 0: its last user
  bool holding_ = false, passed_ = false, calling_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

class Demand::FetchMover : public Mover {
 public:
  explicit FetchMover(Demand* demand) : d_(demand) {}
  const char* name() const override { return "atp-fetch"; }

  Poll Look() override {
    if (d_->fetches_.empty()) return {};
    const Move& move = d_->fetches_.front();
    if (d_->EvictsDone() < move.after) return {};
    const bool full = d_->in_flight_.size() == kFetchStreams ||
                      d_->in_flight_bytes_ + move.action.bytes > kMaxInFlight;
    if (full && !d_->in_flight_.empty()) return {Poll::Kind::kEvent, d_->in_flight_.front().first};
    return {Poll::Kind::kReady};
  }

  void OnEvent(CUevent event) override {
    if (d_->in_flight_.empty() || d_->in_flight_.front().first != event) return;
    d_->in_flight_bytes_ -= d_->in_flight_.front().second;
    d_->in_flight_.pop_front();
  }

  void Act(std::unique_lock<std::mutex>& lock) override {
    action_ = d_->fetches_.front().action;
    d_->fetches_.pop_front();
    CUevent& event = d_->events_[d_->issued_ % kEvents];
    if (event == nullptr) event = d_->port_->NewEvent();
    event_ = event;
    if (action_.allocation == nullptr) return;
    const unsigned stream = d_->stream_++ % kFetchStreams;
    const uint64_t address = action_.allocation->address + action_.offset;
    calling_ = true;
    lock.unlock();
    result_ = d_->port_->Fetch(stream, address, action_.bytes, event_);
    lock.lock();
  }

  void Finish() override {
    calling_ = false;
    ++d_->issued_;
    if (action_.allocation == nullptr) return;
    if (result_ != CUDA_SUCCESS) return d_->Failed();
    d_->counters_.fetched += action_.bytes;
    d_->in_flight_.emplace_back(event_, action_.bytes);
    d_->in_flight_bytes_ += action_.bytes;
    d_->observer_->OnMoved(action_, /*to_device=*/true);
  }

  bool calling() const { return calling_; }

 private:
  Demand* d_;
  Action action_;
  CUevent event_ = nullptr;
  bool calling_ = false;
  CUresult result_ = CUDA_SUCCESS;
};

namespace {

// One thread for the moves of plans and for those of demand: never both have something to do.
class SharedMover : public Mover {
 public:
  SharedMover(Mover* planned, Mover* demand) : planned_(planned), demand_(demand) {}
  const char* name() const override { return planned_->name(); }
  Poll Look() override {
    now_ = planned_;
    const Poll poll = now_->Look();
    if (poll.kind != Poll::Kind::kIdle) return poll;
    now_ = demand_;
    return now_->Look();
  }
  void OnEvent(CUevent event) override { now_->OnEvent(event); }
  void Act(std::unique_lock<std::mutex>& lock) override { now_->Act(lock); }
  void Finish() override { now_->Finish(); }

 private:
  Mover *planned_, *demand_, *now_ = nullptr;
};

}  // namespace

Demand::Demand(HintPort* port, Traffic::Observer* observer, PlainClock* clock)
    : port_(port), observer_(observer), clock_(clock) {
  for (unsigned i = 0; i < kEvictMovers; ++i) {
    evict_movers_.push_back(std::make_unique<EvictMover>(this, i));
  }
  fetch_mover_ = std::make_unique<FetchMover>(this);
}

Demand::~Demand() = default;

std::vector<Mover*> Demand::Share(const std::vector<Mover*>& planned) {
  std::vector<Mover*> list;
  for (size_t i = 0; i < planned.size(); ++i) {
    Mover* mine =
        i < kEvictMovers ? static_cast<Mover*>(evict_movers_[i].get()) : fetch_mover_.get();
    shared_.push_back(std::make_unique<SharedMover>(planned[i], mine));
    list.push_back(shared_.back().get());
  }
  return list;
}

uint64_t Demand::Before(const LaunchView& launch, const Terms& terms) {
  if (seen_.empty()) {
    seen_.resize(PlainClock::kRing);
    marks_ = std::make_unique<Mark[]>(kMarks);
  }
  if (clock_->count() == 0) return 0;  // a plan has ended with this very launch
  ReadClock(terms.alone_counts);
  constexpr unsigned kMostErrors = 8;
  const bool serve = trial_.Decide(launch.signature) && errors_ < kMostErrors;
  Note(launch, serve);
  queued_ = false;
  CollectUses(launch);
  if (!serve) {
    if (serving_) Pause();
    return 0;
  }
  serving_ = true;
  hot_.SetRoom(terms.room);
  const policy::HotSet::Moves& moves = hot_.Launch(uses_);
  if (!moves.served) return 0;
  ++counters_.served;
  Queue(moves, terms);
  terms_ = terms;
  ++launches_;
  for (const policy::HotSet::Use& use : uses_) {
    Item& item = items_[use.id];
    item.last_use = launches_;
    SetServed(use.id, item.written() ? kHere | kWritten : kHere);
  }
  lacked_ = !moves.fetch.empty();
  Mark& mark = marks_[launches_ % kMarks];
  if (mark.event == nullptr) mark.event = port_->NewEvent();
  return launches_;
}

void Demand::CollectUses(const LaunchView& launch) {
  const uint64_t number = ++collected_;
  uses_.clear();
  ForEachUse(launch, [&](Allocation* allocation, bool writes) {
    const uint32_t slot = allocation->slot;
    if (slot >= items_.size()) items_.resize(slot + 1);
    Item& item = items_[slot];
    if (writes) item.reads = 0;
    if (item.seen == number) return;  // many pointers, few allocations
    if (!writes && item.written()) ++item.reads;
    item.seen = number;
    item.allocation = allocation;
    uses_.push_back({slot, allocation->mapped_bytes});
  });
}

void Demand::SetServed(uint32_t slot, uint8_t bits) const {
  std::atomic_ref served(items_[slot].allocation->served);
  if (served.load(std::memory_order_relaxed) != bits) {
    served.store(bits, std::memory_order_relaxed);
  }
}

bool Demand::NeedsNothing(const LaunchView& launch) const {
  bool all = true;
  ForEachUse(launch, [&](Allocation* allocation, bool writes) {
    const uint8_t needed = writes ? kHere | kWritten : kHere;
    const std::atomic_ref served(allocation->served);
    all &= (served.load(std::memory_order_relaxed) & needed) == needed;
  });
  return all;
}

// Nobody knows when it ends on the device: what it used may leave behind the last launch that is
// marked.
bool Demand::Late(const LaunchView& launch) {
  if (!serving_) return false;
  queued_ = false;
  CollectUses(launch);
  for (const policy::HotSet::Use& use : uses_) {
    if (!hot_.IsResident(use.id)) return false;  // it has left meanwhile
  }
  const policy::HotSet::Moves& moves = hot_.Launch(uses_);
  if (!moves.served) return false;
  ++counters_.served;
  Queue(moves, terms_);
  for (const policy::HotSet::Use& use : uses_) items_[use.id].last_use = launches_;
  return queued_;
}

void Demand::Note(const LaunchView& launch, bool served) {
  seen_[(clock_->count() - 1) % PlainClock::kRing] = {launch.signature, served};
}

// A launch has taken from its own event to that of the next one. Asked once in a few launches.
void Demand::ReadClock(bool alone_counts) {
  constexpr uint64_t kEvery = 16;
  if (read_ > clock_->count()) read_ = clock_->count();  // it has been set back
  if (++unread_for_ < kEvery) return;
  unread_for_ = 0;
  const uint64_t last = clock_->count() - 1;  // of the launch at hand, of which nothing is known
  if (last - std::min(last, read_) >= PlainClock::kRing - kEvery) read_ = last;
  while (read_ + 1 < last) {
    const CUevent begin = clock_->EventOf(read_), end = clock_->EventOf(read_ + 1);
    if (end != nullptr && !port_->Done(end)) break;
    const double seconds = begin == nullptr || end == nullptr ? -1 : port_->Elapsed(begin, end);
    const Seen& seen = seen_[read_ % PlainClock::kRing];
    if (seconds >= 0 && alone_counts) trial_.Took(seen.kind, seconds, seen.served);
    ++read_;
  }
}

void Demand::Queue(const policy::HotSet::Moves& moves, const Terms& terms) {
  const auto leave = [&](const std::vector<uint32_t>& slots, bool ahead) {
    for (const uint32_t slot : slots) {
      const Item& item = items_[slot];
      SetServed(slot, 0);
      constexpr uint8_t kGivenUp = 2;
      Move move;
      move.after = item.last_use;
      move.ahead = ahead;
      move.action.clean =
          item.allocation->read_mostly ||
          (terms.read_mostly && !item.written() && item.allocation->read_mostly_broken < kGivenUp);
      QueueMoves(slot, move, terms.piece_bytes, &evicts_);
    }
  };
  leave(moves.leave, /*ahead=*/false);
  const size_t before = fetches_.size();
  uint64_t resident = hot_.resident();
  for (const uint32_t slot : moves.leave_ahead) resident += items_[slot].allocation->mapped_bytes;
  Move fetch;
  fetch.after = EvictsFor(terms.room - std::min(resident, terms.room));
  for (const uint32_t slot : moves.fetch) QueueMoves(slot, fetch, terms.piece_bytes, &fetches_);
  wanted_ += fetches_.size() - before;
  leave(moves.leave_ahead, /*ahead=*/true);
  queued_ = !moves.leave.empty() || !moves.fetch.empty() || !moves.leave_ahead.empty();
}

void Demand::QueueMoves(uint32_t slot, const Move& like, uint64_t piece, std::deque<Move>* queue) {
  Allocation* allocation = items_[slot].allocation;
  for (uint64_t at = 0; at < allocation->mapped_bytes; at += piece) {
    Move move = like;
    move.action.allocation = allocation;
    move.action.offset = at;
    move.action.bytes = std::min(piece, allocation->mapped_bytes - at);
    queue->push_back(move);
    if (queue != &evicts_) continue;
    ++evicts_queued_;
    leaving_.push_back(move.action.bytes);
  }
}

// How many evictions must be done if so many bytes of the last ones may still be there.
uint64_t Demand::EvictsFor(uint64_t bytes_to_stay) {
  while (leaving_.size() > evicts_queued_ - EvictsDone()) leaving_.pop_front();
  uint64_t needed = evicts_queued_;
  for (auto bytes = leaving_.rbegin(); bytes != leaving_.rend() && *bytes <= bytes_to_stay;
       ++bytes) {
    bytes_to_stay -= *bytes;
    --needed;
  }
  return needed;
}

Traffic::FetchEvents Demand::LastFetches() const {
  Traffic::FetchEvents last;
  for (uint64_t n = issued_; n > 0 && issued_ - n < kFetchStreams; --n) {
    if (const CUevent event = events_[(n - 1) % kEvents]) last.events[last.count++] = event;
  }
  return last;
}

bool Demand::After(const LaunchView& launch, uint64_t number) {
  Mark& mark = marks_[number % kMarks];
  port_->Record(mark.event, launch.stream, launch.per_thread);
  mark.launch = number;
  return awaited_;
}

// A mark that is set while it is looked at is seen here, or who sets it sees that it is awaited.
bool Demand::IsPassed(uint64_t launch) {
  const Mark& mark = marks_[launch % kMarks];
  if (mark.launch >= launch) return true;
  awaited_ = true;
  return mark.launch >= launch;
}

uint64_t Demand::EvictsDone() const {
  uint64_t done = evicts_begun_;
  for (const auto& mover : evict_movers_) {
    if (mover->holding()) done = std::min(done, mover->number());
  }
  return done;
}

bool Demand::RoomIsAwaited() const {
  return !fetches_.empty() && EvictsDone() < fetches_.front().after;
}

// From here on the driver moves pages by itself.
void Demand::Pause() {
  serving_ = false;
  hot_.Clear();
  for (uint32_t slot = 0; slot < items_.size(); ++slot) {
    if (items_[slot].allocation != nullptr) SetServed(slot, 0);
  }
  evicts_.clear();
  fetches_.clear();
  evicts_queued_ = evicts_begun_;
  leaving_.clear();
  for (const auto& mover : evict_movers_) mover->Abandon();
  in_flight_.clear();
  in_flight_bytes_ = 0;
  issued_ = wanted_ - (fetch_mover_->calling() ? 1 : 0);  // nobody waits for the others any more
}

void Demand::Stop() {
  if (serving_) Pause();
}

bool Demand::Quiet() const {
  for (const auto& mover : evict_movers_) {
    if (mover->calling()) return false;
  }
  return !fetch_mover_->calling();
}

void Demand::Forget(const Allocation* allocation) {
  const uint32_t slot = allocation->slot;
  if (slot >= items_.size() || items_[slot].allocation != allocation) return;
  hot_.Remove(slot);
  SetServed(slot, 0);
  items_[slot] = {};
  for (std::deque<Move>* queue : {&evicts_, &fetches_}) {
    for (Move& move : *queue) {
      if (move.action.allocation == allocation) move.action.allocation = nullptr;
    }
  }
  for (const auto& mover : evict_movers_) mover->Forget(allocation);
}

}  // namespace atp::shim
