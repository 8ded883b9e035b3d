// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/plan_executor.h"

#include <algorithm>

namespace atp::policy {
namespace {

// A repair's fetch starts so many launches before the data is needed.
constexpr Instance kRepairLead = 8;
// How far the mover looks for launches that will lack room.
constexpr Instance kLookAhead = 4;
// The plan's times are sums of thousands of doubles.
constexpr double kClockSlack = 1e-9;

}  // namespace

PlanExecutor::PlanExecutor(const Trace& trace, const Uses& uses, const ReplayOptions& options,
                           const Plan& plan)
    : Executor(trace, uses, options), plan_(plan) {
  fetched_for_.assign(machine_.EndBlock(static_cast<uint32_t>(trace.tensors.size()) - 1), 0);
  started_.assign(uses.launches, 0);
  started_instance_.assign(uses.launches, kNever);
  born_before_.assign(1, 0);
  for (uint32_t k = 0; k < uses.launches; ++k) {
    Bytes born = trace.launches[k].workspace;
    for (uint32_t t : uses.born[k]) born += trace.tensors[t].bytes;
    born_before_.push_back(born_before_.back() + born);
  }
  for (const Move& fetch : plan.fetches) {
    const auto& starts = plan.launch_start;
    const auto after = std::upper_bound(starts.begin(), starts.end(), fetch.start);
    trigger_.push_back(static_cast<uint32_t>(after == starts.begin() ? uses.launches - 1
                                                                     : after - starts.begin() - 1));
  }
}

void PlanExecutor::Prepare() {
  for (uint32_t t : plan_.mapped) machine_.MapRemote(t);
  for (const Plan::Piece& piece : plan_.initially_resident) {
    Job job = MakeJob(Move{.tensor = piece.tensor, .offset = piece.offset, .bytes = piece.bytes});
    for (Block b = job.next; b < job.end; ++b) {
      const bool out = machine_.StateOf(b) == State::kOut;
      if (out && machine_.HasRoom(machine_.BytesOf(b))) machine_.Populate(b);
    }
  }
}

PlanExecutor::Job PlanExecutor::MakeJob(const Move& move) const {
  const Block first = machine_.FirstBlock(move.tensor), end = machine_.EndBlock(move.tensor);
  const Bytes size = options_.block;
  Job job;
  job.move = &move;
  job.next = std::min<Bytes>(first + move.offset / size, end);
  job.end = std::min<Bytes>(first + (move.offset + move.bytes + size - 1) / size, end);
  return job;
}

void PlanExecutor::BeginPeriod(uint32_t period) {
  const Instance base = Instance{period} * uses_.launches;
  for (const Move& move : plan_.evictions) {
    Job job = MakeJob(move);
    const bool this_period = move.start >= plan_.launch_end[move.after] - kClockSlack;
    // In period 0, what left after the last launches of the period before.
    job.launch = base + move.after;
    const Instance gap = (move.before + uses_.launches - move.after - 1) % uses_.launches + 1;
    job.until = job.launch + gap;
    if (!this_period) {
      job.launch = period == 0 ? kNever : job.launch - uses_.launches;
      job.until -= std::min<Instance>(job.until, uses_.launches);
    }
    evictions_.push_back(job);
  }
  for (size_t i = 0; i < plan_.fetches.size(); ++i) {
    const Move& move = plan_.fetches[i];
    Job job = MakeJob(move);
    const bool this_period = move.end <= plan_.launch_start[move.before] + kClockSlack;
    job.launch = base + move.before + (this_period ? 0 : uses_.launches);
    const uint32_t k = trigger_[i];
    const bool before_first = plan_.launch_start[k] > move.start;  // in the stall before launch 0
    job.trigger = before_first ? (period == 0 ? kNever : base - 1) : base + k;
    job.offset = move.start - plan_.launch_start[k] + (before_first ? plan_.period_seconds : 0);
    fetches_.push_back(job);
    fetches_for_[job.launch].push_back(&fetches_.back());
  }
}

double PlanExecutor::TriggerTime(const Job& job) const {
  if (job.trigger == kNever) return 0;
  const uint32_t k = static_cast<uint32_t>(job.trigger % uses_.launches);
  if (started_instance_[k] == kNever || started_instance_[k] < job.trigger) return kForever;
  return started_[k] + job.offset;
}

void PlanExecutor::BeginWait() {
  // Pieces of two moves may name the same launch; they are taken in the order of the plan.
  if (current() > 0) fetches_for_.erase(current() - 1);
  DropFinished();
  evictions_.insert(evictions_.begin(), postponed_.begin(), postponed_.end());
  postponed_.clear();
  looked_ = false;
}

void PlanExecutor::OnStart() {
  started_[Position()] = machine_.now();
  started_instance_[Position()] = current();
  lacking_ = LackingAhead();
}

int64_t PlanExecutor::BytesDue(const std::vector<Job*>& jobs) const {
  int64_t bytes = 0;
  for (const Job* job : jobs) {
    for (Block b = job->next; b < job->end; ++b) {
      if (machine_.StateOf(b) == State::kOut) bytes += static_cast<int64_t>(machine_.BytesOf(b));
    }
  }
  return bytes;
}

Bytes PlanExecutor::LackingAhead() const {
  const auto ends_with = [&](uint32_t k) {  // what is given back when the launch ends
    int64_t bytes = static_cast<int64_t>(trace_.launches[k].workspace);
    for (uint32_t t : uses_.dies[k]) bytes += static_cast<int64_t>(trace_.tensors[t].bytes);
    return bytes;
  };
  const int64_t capacity = static_cast<int64_t>(machine_.capacity() - options_.head_room);
  int64_t used = static_cast<int64_t>(machine_.used() - machine_.Leaving()), most = 0;
  used -= ends_with(Position());
  // A period's moves are known once it has begun.
  const Instance period_end = (current() / uses_.launches + 1) * uses_.launches;
  const Instance end = std::min(period_end, current() + 1 + kLookAhead);
  for (Instance k = current() + 1; k < end; ++k) {
    const uint32_t at = static_cast<uint32_t>(k % uses_.launches);
    used += static_cast<int64_t>(born_before_[at + 1] - born_before_[at]);
    if (const auto jobs = fetches_for_.find(k); jobs != fetches_for_.end()) {
      used += BytesDue(jobs->second);
    }
    for (const Job& job : evictions_) {
      const bool since =
          k == current() + 1 ? job.launch == kNever || job.launch < k : job.launch + 1 == k;
      for (Block b = job.next; since && b < job.end; ++b) {
        if (machine_.StateOf(b) == State::kEvicting) continue;  // in Leaving()
        used -= static_cast<int64_t>(machine_.BytesOf(b));
      }
    }
    most = std::max(most, used - capacity);
    used -= ends_with(at);
  }
  return static_cast<Bytes>(most);
}

void PlanExecutor::DropFinished() {
  // Jobs stay in place while the launch that they are for has not started: fetches_for_ points at
  // them.
  auto over = [&](const Job& job) { return job.Done() && job.launch < current(); };
  while (!fetches_.empty() && over(fetches_.front())) fetches_.pop_front();
  while (!repairs_.empty() && over(repairs_.front())) repairs_.pop_front();
}

void PlanExecutor::Pump() {
  PumpEvictions();
  if (!faulting()) PumpFetches();
}

void PlanExecutor::PumpEvictions() {
  while (!machine_.Busy(CopyDirection::kD2h) && !evictions_.empty()) {
    Job& job = evictions_.front();
    const bool after_last_use =
        job.launch == kNever || job.launch < current();  // the current launch has not finished
    if (!after_last_use) break;
    if (job.until > current() && TouchedNow(job.move->tensor)) {
      postponed_.push_back(job);
      evictions_.pop_front();
      continue;
    }
    if (job.Done() || !StepEviction(&job)) evictions_.pop_front();
  }
  if (!machine_.Busy(CopyDirection::kD2h)) RefillHeadRoom();
  if (!machine_.Busy(CopyDirection::kD2h) && lacking_ > 0) {
    lacking_ -= std::min(lacking_, options_.block);
    Repair();
  }
}

// False when the job is through.
bool PlanExecutor::StepEviction(Job* job) {
  // Too late, or in use: it stays.
  const bool stays = job->until <= current() || TouchedNow(job->move->tensor);
  for (; job->next < job->end; ++job->next) {
    const Block block = job->next;
    if (stays || machine_.StateOf(block) != State::kIn) continue;
    if (fetched_for_[block] == job->until + 1) continue;  // its fetch came first
    ++job->next;
    Evict(block, options_.costs.move_seconds);
    return true;
  }
  return false;
}

PlanExecutor::Job* PlanExecutor::NeededFetch() {
  if (!waiting()) return nullptr;
  const auto found = fetches_for_.find(current());
  if (found == fetches_for_.end()) return nullptr;
  for (Job* job : found->second) {
    if (!job->Done()) return job;
  }
  return nullptr;
}

void PlanExecutor::PumpFetches() {
  while (!machine_.Busy(CopyDirection::kH2d)) {
    Job* needed = NeededFetch();
    if (needed != nullptr) {
      if (!StepFetch(needed)) return;
      continue;
    }
    // While a launch waits for room, nobody else takes it.
    if (RoomWanted() > 0 && waiting()) return;
    Job* next = nullptr;
    for (std::deque<Job>* queue : {&fetches_, &repairs_}) {
      auto open = std::find_if(queue->begin(), queue->end(), [](Job& j) { return !j.Done(); });
      if (open == queue->end()) continue;
      if (TriggerTime(*open) <= machine_.now() || MayStartEarly(*open)) {
        next = &*open;
        break;
      }
    }
    if (next == nullptr || !StepFetch(next)) return;
  }
}

// Fetches run in the order of the plan, so that only what is born until then competes for the room.
bool PlanExecutor::MayStartEarly(const Job& job) const {
  const Instance first = current() + (waiting() ? 0 : 1);
  if (job.trigger == kNever || job.trigger >= first + uses_.launches) return false;
  if (machine_.StateOf(job.next) != State::kOut) return false;
  Bytes reserved = options_.head_room;
  if (job.trigger >= first) {
    const size_t from = first % uses_.launches, to = job.trigger % uses_.launches;
    reserved += born_before_[to + 1] - born_before_[from];
    if (to < from) reserved += born_before_.back();
  }
  return machine_.HasRoom(machine_.BytesOf(job.next) + reserved);
}

bool PlanExecutor::StepFetch(Job* job) {
  for (; job->next < job->end; ++job->next) {
    const Block block = job->next;
    const State state = machine_.StateOf(block);
    if (state == State::kEvicting) return false;  // comes back once it has left
    if (state == State::kIn || state == State::kFetching) fetched_for_[block] = job->launch + 1;
    if (state != State::kOut) continue;
    if (!machine_.HasRoom(machine_.BytesOf(block))) return false;
    ++job->next;
    machine_.StartFetch(block, options_.costs.move_seconds);
    return true;
  }
  return true;
}

double PlanExecutor::NextTimer() const {
  double timer = kForever;
  for (const std::deque<Job>* queue : {&fetches_, &repairs_}) {
    auto open = std::find_if(queue->begin(), queue->end(), [](const Job& j) { return !j.Done(); });
    if (open == queue->end()) continue;
    const double at = TriggerTime(*open);
    if (at > machine_.now()) timer = std::min(timer, at);
  }
  return timer;
}

std::vector<Executor::Block> PlanExecutor::Uncovered() {
  std::vector<Block> missing;
  std::vector<Job*> jobs;
  if (const auto found = fetches_for_.find(current()); found != fetches_for_.end()) {
    jobs = found->second;
  }
  auto covered = [&](Block block) {
    return std::any_of(jobs.begin(), jobs.end(),
                       [&](Job* j) { return block >= j->next && block < j->end; });
  };
  for (uint32_t t : uses_.touched[Position()]) {
    if (machine_.FullyResident(t)) continue;
    for (Block b = machine_.FirstBlock(t); b < machine_.EndBlock(t); ++b) {
      if (machine_.StateOf(b) == State::kOut && !covered(b)) missing.push_back(b);
    }
  }
  return missing;
}

bool PlanExecutor::Serve(bool stuck) {
  // While a launch waits nothing that it needs leaves, so that one look is enough until all else
  // has come.
  if (looked_ && !stuck) return LacksRoom() && Repair();
  looked_ = true;
  const std::vector<Block> missing = Uncovered();
  if (!missing.empty()) {
    return ServeFaults(missing, options_.costs.faults_per_block_with_prefetch);
  }
  return (stuck || LacksRoom()) && Repair();
}

bool PlanExecutor::LacksRoom() const {
  if (machine_.Busy(CopyDirection::kD2h)) return false;
  return !machine_.HasRoom(RoomWanted() + BytesToFetch());
}

bool PlanExecutor::Repair() {
  const Block victim = machine_.FurthestUse(current(), [&](uint32_t t) { return TouchedNow(t); });
  if (victim == Machine::kNoBlock) return false;
  ++result_.forced_evictions;
  const uint32_t tensor = machine_.TensorOf(victim);
  const Instance next_use = machine_.NextUseOf(tensor);
  Evict(victim, options_.costs.move_seconds);
  if (next_use == kNever) return true;
  Job job;
  job.launch = next_use;
  job.trigger = std::max(current() + 1, next_use - std::min(next_use, kRepairLead));
  job.next = victim;
  job.end = victim + 1;
  repairs_.push_back(job);
  fetches_for_[job.launch].push_back(&repairs_.back());
  return true;
}

// What faults brought in against the plan took room that the plan counts on.
void PlanExecutor::RefillHeadRoom() {
  if (options_.head_room > 0 && !machine_.HasRoom(options_.head_room)) Repair();
}

}  // namespace atp::policy
