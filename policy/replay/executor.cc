// SPDX-License-Identifier: Apache-2.0
#include "policy/replay/executor.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {
namespace {

constexpr uint32_t kWarmPeriods = 2, kMostPeriods = 12;
constexpr uint32_t kAlike = 2;  // policies that wander are alike once by chance
constexpr double kSame = 1e-4;  // relative

bool Alike(const ReplayResult& a, const ReplayResult& b) {
  return a.h2d == b.h2d && a.d2h == b.d2h &&
         std::abs(a.period_seconds - b.period_seconds) <= kSame * b.period_seconds;
}

// Of the figures that are reported.
struct Sums {
  void Add(const ReplayResult& r) {
    ++count;
    period += r.period_seconds, stall += r.stall_seconds;
    h2d += double(r.h2d), d2h += double(r.d2h);
  }
  void Mean(ReplayResult* r) const {
    if (count == 0) return;
    r->period_seconds = period / count, r->stall_seconds = stall / count;
    r->h2d = static_cast<Bytes>(h2d / count), r->d2h = static_cast<Bytes>(d2h / count);
  }

  double period = 0, stall = 0, h2d = 0, d2h = 0;
  int count = 0;
};

}  // namespace

Executor::Executor(const Trace& trace, const Uses& uses, const ReplayOptions& options)
    : trace_(trace), uses_(uses), options_(options), machine_(trace, uses, options) {
  stamp_.assign(trace.tensors.size(), 0);
  for (uint32_t t = 0; t < trace.tensors.size(); ++t) {
    const auto& at = uses.positions[t];
    machine_.SetNextUse(t, at.empty() ? kNever : at.front());
  }
}

ReplayResult Executor::Run() {
  Prepare();
  const uint32_t least = std::max(1u, options_.periods);
  ReplayResult before;
  uint32_t alike = 0;  // periods like the one before them, in a row
  Sums sums;
  for (uint32_t period = 0; period < std::max(least, kMostPeriods); ++period) {
    RunPeriod(period);
    if (!result_.why.empty()) return result_;
    if (period >= kWarmPeriods) sums.Add(result_);
    alike = Alike(result_, before) ? alike + 1 : 0;
    if (period + 1 >= least && (alike >= kAlike || least == 1)) break;
    before = result_;
    if (period + 1 >= kMostPeriods) sums.Mean(&result_);
  }
  result_.completed = true;
  result_.peak = machine_.peak();
  return result_;
}

void Executor::RunPeriod(uint32_t period) {
  const double began = machine_.now();
  const bool last = period + 1 >= std::max(1u, options_.periods);  // unless more are run
  const Bytes h2d = machine_.moved(CopyDirection::kH2d), d2h = machine_.moved(CopyDirection::kD2h);
  if (last && options_.timeline) machine_.RecordTimeline();
  result_ = ReplayResult();
  BeginPeriod(period);
  for (uint32_t k = 0; k < uses_.launches; ++k) {
    current_ = Instance{period} * uses_.launches + k;
    for (uint32_t t : uses_.touched[k]) stamp_[t] = current_ + 1;
    if (!WaitForLaunch()) {
      result_.why = "launch " + std::to_string(k) + " (" + trace_.launches[k].name +
                    ") cannot have all that it touches on the device at once";
      return;
    }
    result_.launch_start.push_back(machine_.now() - began);
    RunLaunch();
    result_.launch_end.push_back(machine_.now() - began);
    result_.compute_seconds += trace_.launches[k].seconds;
    FinishLaunch();
  }
  result_.period_seconds = machine_.now() - began;
  result_.stall_seconds = result_.period_seconds - result_.compute_seconds;
  result_.h2d = machine_.moved(CopyDirection::kH2d) - h2d;
  result_.d2h = machine_.moved(CopyDirection::kD2h) - d2h;
  result_.transfers = machine_.transfers();
  result_.residency = machine_.residency();
  for (TransferRun& run : result_.transfers) run.start -= began, run.end -= began;
  for (ResidencySample& sample : result_.residency) sample.time -= began;
}

bool Executor::WaitForLaunch() {
  waiting_ = true;
  wait_began_ = machine_.now();
  BeginWait();
  WantBirths();
  while (true) {
    Pump();  // what the launch itself still fetches comes before what is born in it
    if (ReadyToStart()) break;
    const double timer = NextTimer();
    const bool stuck = !machine_.Busy(CopyDirection::kH2d) && !machine_.Busy(CopyDirection::kD2h) &&
                       timer >= kForever;
    if (Serve(stuck)) continue;
    if (stuck) return false;
    machine_.Advance(timer);
  }
  waiting_ = false;
  return true;
}

bool Executor::ReadyToStart() {
  PlaceBirths();
  return room_wanted_ == 0 && !MissingNow();
}

void Executor::WantBirths() {
  room_wanted_ = trace_.launches[Position()].workspace;
  for (uint32_t t : uses_.born[Position()]) {
    if (!BirthsNeedNoFault()) continue;
    for (Block b = machine_.FirstBlock(t); b < machine_.EndBlock(t); ++b) {
      if (machine_.StateOf(b) == State::kUnborn) room_wanted_ += machine_.BytesOf(b);
    }
  }
}

Bytes Executor::BytesToFetch() const {
  Bytes bytes = 0;
  for (uint32_t t : uses_.touched[Position()]) {
    if (machine_.FullyResident(t)) continue;
    for (Block b = machine_.FirstBlock(t); b < machine_.EndBlock(t); ++b) {
      if (machine_.StateOf(b) == State::kOut) bytes += machine_.BytesOf(b);
    }
  }
  return bytes;
}

// Claims room for what is born in the waiting launch as it becomes free, so that no later fetch
// takes it.
void Executor::PlaceBirths() {
  const uint32_t k = Position();
  room_wanted_ = 0;
  const bool first = FetchesComeFirst() && !uses_.born[k].empty();
  const Bytes to_fetch = first ? BytesToFetch() : 0;
  for (uint32_t t : uses_.born[k]) {
    if (!BirthsNeedNoFault() || machine_.FullyResident(t)) continue;
    machine_.SetNextUse(t, current_);
    for (Block b = machine_.FirstBlock(t); b < machine_.EndBlock(t); ++b) {
      if (machine_.StateOf(b) != State::kUnborn) continue;
      if (room_wanted_ == 0 && machine_.HasRoom(machine_.BytesOf(b) + to_fetch)) {
        machine_.Populate(b);
      } else {
        room_wanted_ += machine_.BytesOf(b);
      }
    }
  }
  const Bytes workspace = trace_.launches[k].workspace;
  if (workspace != 0 && !machine_.HasRoom(workspace + room_wanted_)) {
    room_wanted_ += workspace;
  }
}

bool Executor::MissingNow() const {
  const auto& touched = uses_.touched[Position()];
  return !std::all_of(touched.begin(), touched.end(),
                      [&](uint32_t t) { return machine_.FullyResident(t); });
}

// Nothing of it is overlapped with the launch's own time.
double Executor::RemoteSeconds() {
  const Launch& launch = trace_.launches[Position()];
  const auto bytes = [&](const std::vector<uint32_t>& touched) {
    Bytes sum = 0;
    for (uint32_t t : touched) sum += machine_.Remote(t) ? trace_.tensors[t].bytes : 0;
    return sum;
  };
  const Bytes in = bytes(launch.reads), out = bytes(launch.writes);
  result_.remote_h2d += in, result_.remote_d2h += out;
  return std::max(double(in) / trace_.link.h2d, double(out) / trace_.link.d2h);
}

void Executor::RunLaunch() {
  const Launch& launch = trace_.launches[Position()];
  machine_.TakeWorkspace(launch.workspace);
  OnStart();
  const double seconds = launch.seconds;
  const double remote = RemoteSeconds();
  double end = machine_.now() + seconds + remote;
  // G10's rule: the launch has run beside its own wait, and only the longer of the two counts.
  if (options_.rule == LaunchRule::kOverlapOwn) {
    end = std::max(machine_.now(), wait_began_ + seconds + remote);
  }
  Pump();
  while (machine_.now() < end) {
    machine_.Advance(std::min(end, std::max(machine_.now(), NextTimer())));
    Pump();
  }
  machine_.GiveWorkspace(launch.workspace);
}

void Executor::FinishLaunch() {
  const uint32_t k = Position();
  for (uint32_t t : uses_.touched[k]) machine_.SetNextUse(t, uses_.NextUse(t, current_));
  for (uint32_t t : uses_.dies[k]) machine_.Kill(t);
  OnFinish();
}

void Executor::Evict(Block block, double setup) {
  if (LeavesFree(machine_.TensorOf(block))) {
    machine_.DropClean(block);
  } else {
    machine_.StartEvict(block, setup);
  }
}

void Executor::Wait(double seconds) {
  const double until = machine_.now() + seconds;
  while (machine_.now() < until) {
    if (machine_.Advance(std::min(until, std::max(machine_.now(), NextTimer())))) Pump();
  }
}

void Executor::AwaitIdle(CopyDirection direction) {
  while (machine_.Busy(direction)) {
    machine_.Advance(kForever);
    Pump();
  }
}

Executor::Block Executor::FaultVictim() {
  return machine_.OldestArrival([&](uint32_t t) { return TouchedNow(t); });
}

bool Executor::EvictOne(Block victim) {
  if (victim == Machine::kNoBlock) return false;
  ++result_.forced_evictions;
  if (!LeavesFree(machine_.TensorOf(victim))) Wait(options_.costs.evict_seconds);
  while (machine_.Busy(CopyDirection::kD2h)) machine_.Advance(kForever);
  if (machine_.StateOf(victim) != State::kIn) return true;  // a mover took it meanwhile
  Evict(victim, 0);
  while (machine_.StateOf(victim) == State::kEvicting) machine_.Advance(kForever);
  return true;
}

bool Executor::MakeRoom(Bytes bytes) {
  while (!machine_.HasRoom(bytes)) {
    if (EvictOne(FaultVictim())) continue;
    if (!machine_.Busy(CopyDirection::kD2h)) return false;
    machine_.Advance(kForever);
  }
  return true;
}

// The driver's time for a block's faults. Batches are served one after another; nothing else
// overlaps them but copies that movers started.
void Executor::ChargeFaults(Block block, uint32_t faults) {
  const DriverCosts& costs = options_.costs;
  const bool fresh = machine_.StateOf(block) == State::kUnborn;
  while (faults > 0) {
    if (batch_room_ == 0) {
      ++result_.fault_batches;
      batch_room_ = costs.faults_per_batch;
      Wait(costs.batch_seconds);
    }
    const uint32_t taken = std::min(faults, batch_room_);
    faults -= taken;
    batch_room_ -= taken;
    Wait(fresh ? costs.first_touch_seconds : costs.fault_seconds);
  }
}

bool Executor::ServeFaults(const std::vector<Block>& missing, uint32_t faults_per_block) {
  faulting_ = true;
  batch_room_ = 0;
  bool served = true;
  for (Block block : missing) {
    if (machine_.StateOf(block) != State::kOut && machine_.StateOf(block) != State::kUnborn)
      continue;
    ChargeFaults(block, faults_per_block);
    AwaitIdle(CopyDirection::kH2d);
    served = MakeRoom(machine_.BytesOf(block));
    if (!served) break;
    ++result_.fault_blocks;
    if (machine_.StateOf(block) == State::kUnborn) {
      machine_.Populate(block);
      continue;
    }
    machine_.StartFetch(block, 0);
    while (machine_.StateOf(block) == State::kFetching) {
      machine_.Advance(kForever);
      Pump();
    }
  }
  faulting_ = false;
  return served;
}

}  // namespace atp::policy
