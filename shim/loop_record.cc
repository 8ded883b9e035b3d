// SPDX-License-Identifier: Apache-2.0
#include "shim/loop_record.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "shim/device.h"
#include "shim/run_record.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

using protocol::RunRecordDevice;
using protocol::RunRecordLaunch;
using protocol::RunRecordMove;
using protocol::RunRecordNote;
using protocol::RunRecordRow;
using protocol::RunRecordSnapshot;
using protocol::RunRecordTensor;

// Whoever sees the count sees what it counts.
void Publish(uint64_t* count, uint64_t value) {
  std::atomic_ref(*count).store(value, std::memory_order_release);
}

// Packs the parts of a snapshot one behind the other.
class Packer {
 public:
  explicit Packer(char* out) : out_(out) {}
  template <typename T>
  void Put(const std::vector<T>& values) {
    if (!values.empty()) memcpy(out_, values.data(), values.size() * sizeof(T));
    out_ += values.size() * sizeof(T);
  }

 private:
  char* out_;
};

template <typename T>
uint64_t Bytes(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

struct Parts {
  std::vector<RunRecordLaunch> launches;
  std::vector<RunRecordTensor> tensors;
  std::vector<RunRecordMove> moves;
  std::vector<uint32_t> uses;
  std::vector<char> names;

  uint64_t bytes() const {
    return sizeof(RunRecordSnapshot) + Bytes(launches) + Bytes(tensors) + Bytes(moves) +
           Bytes(uses) + Bytes(names);
  }
};

bool WriteSnapshot(const Parts& parts, RunRecordSnapshot snapshot, char* area) {
  if (area == nullptr) return false;
  snapshot.launches = static_cast<uint32_t>(parts.launches.size());
  snapshot.tensors = static_cast<uint32_t>(parts.tensors.size());
  snapshot.moves = static_cast<uint32_t>(parts.moves.size());
  snapshot.uses = static_cast<uint32_t>(parts.uses.size());
  snapshot.name_bytes = static_cast<uint32_t>(parts.names.size());
  memcpy(area, &snapshot, sizeof snapshot);
  Packer packer(area + sizeof snapshot);
  packer.Put(parts.launches);
  packer.Put(parts.tensors);
  packer.Put(parts.moves);
  packer.Put(parts.uses);
  packer.Put(parts.names);
  return true;
}

void AddTensors(const Schedule& schedule, Parts* parts) {
  std::map<std::pair<const Allocation*, uint64_t>, size_t> index;  // by where the part begins
  for (const Placed& placed : schedule.tensors) {
    index.emplace(std::make_pair(placed.allocation, placed.offset), parts->tensors.size());
    RunRecordTensor tensor{};
    tensor.id = placed.allocation->id;
    tensor.bytes = placed.bytes;
    tensor.written = placed.written;
    tensor.first_block = static_cast<uint32_t>(placed.offset / kGranule);
    parts->tensors.push_back(tensor);
  }
  const auto of = [&](const Action& a) {  // a move lies inside one part
    return &parts->tensors[std::prev(index.upper_bound({a.allocation, a.offset}))->second];
  };
  for (const Action& a : schedule.evicts)
    (a.clean ? of(a)->dropped_bytes : of(a)->out_bytes) += a.bytes;
  for (const Action& a : schedule.fetches) of(a)->in_bytes += a.touch ? 0 : a.bytes;
}

// The uses of one launch: a tensor that is read and written is one use.
void AddUses(const policy::Launch& launch, std::vector<uint32_t>* uses) {
  const size_t first = uses->size();
  for (uint32_t t : launch.reads) uses->push_back(t * 4 + protocol::kRunRecordReads);
  for (uint32_t t : launch.writes) {
    const auto same = std::find(uses->begin() + static_cast<ptrdiff_t>(first), uses->end(),
                                t * 4 + protocol::kRunRecordReads);
    if (same != uses->end()) {
      *same += protocol::kRunRecordWrites;
    } else {
      uses->push_back(t * 4 + protocol::kRunRecordWrites);
    }
  }
}

class Names {
 public:
  explicit Names(std::vector<char>* out) : out_(out) {}
  uint32_t At(const char* name) {
    if (name == nullptr) name = "";
    const auto [it, added] = at_.try_emplace(name, static_cast<uint32_t>(out_->size()));
    if (added) out_->insert(out_->end(), name, name + strlen(name) + 1);
    return it->second;
  }

 private:
  std::vector<char>* out_;
  std::unordered_map<std::string, uint32_t> at_;
};

}  // namespace

void LoopRecord::Open(int device, uint64_t budget, uint64_t capacity) {
  if (out_ != nullptr) return;
  device_ = device;
  out_ = OpenRunRecord(device);
  if (out_ == nullptr) return;
  out_->ordinal = device;
  out_->budget_bytes = budget;
  out_->capacity_bytes = capacity;
  if (const Device* described = DeviceOf(device)) {
    out_->total_bytes = described->total;
    snprintf(out_->name, sizeof out_->name, "%s", described->name);
  }
  std::atomic_ref(out_->used).store(1, std::memory_order_release);
}

void LoopRecord::Budget(uint64_t budget, uint64_t capacity) {
  if (out_ == nullptr) return;
  out_->budget_bytes = budget;
  out_->capacity_bytes = capacity;
}

void LoopRecord::Append(const RunRecordRow& row) {
  out_->row[out_->rows % protocol::kRunRecordRows] = row;
  Publish(&out_->rows, out_->rows + 1);
}

void LoopRecord::Iteration(const Start& start) {
  if (out_ == nullptr) return;
  if (under_way_) {
    TimeIn(current_.phase) += start.now_ns - current_.at_ns;
    current_.ended_ns = start.now_ns;
    Append(current_);
  }
  under_way_ = true;
  submitted_whole_ = false;
  current_ = {};
  current_.at_ns = start.now_ns;
  current_.plan = start.plan;
  current_.phase = start.phase;
  out_->managed_bytes = start.managed;
  out_->native_bytes = start.native;
  out_->plans = std::max<uint64_t>(out_->plans, start.plan);
  TimeIn(start.phase);
  out_->phases = static_cast<uint32_t>(phases_.size());
}

uint64_t& LoopRecord::TimeIn(uint32_t phase) {
  for (Phase& known : phases_) {
    if (known.phase == phase) return known.ns;
  }
  return phases_.emplace_back(Phase{phase, 0}).ns;
}

void LoopRecord::Took(double seconds) {
  if (out_ == nullptr || out_->rows == 0) return;
  std::atomic_ref(out_->row[(out_->rows - 1) % protocol::kRunRecordRows].seconds)
      .store(seconds, std::memory_order_relaxed);
}

void LoopRecord::PlainIterations(uint32_t count, uint32_t phase) {
  if (out_ == nullptr) return;
  first_plain_ = out_->rows;
  for (uint32_t i = 0; i < count; ++i) {
    RunRecordRow row{};
    row.phase = phase;
    Append(row);
  }
}

void LoopRecord::PlainTook(const PlainClock::Seconds& seconds, uint32_t count) {
  if (out_ == nullptr) return;
  for (uint32_t i = 0; i < count; ++i) {
    std::atomic_ref(out_->row[(first_plain_ + count - 1 - i) % protocol::kRunRecordRows].seconds)
        .store(std::max(0.0, seconds[i]), std::memory_order_relaxed);
  }
}

void LoopRecord::Broken() {
  if (out_ != nullptr && under_way_) {
    ++out_->breaks;
    // When it ended is not known: no iteration began behind it.
    if (submitted_whole_) Append(current_);
  }
  under_way_ = false;
  submitted_.clear();
}

void LoopRecord::Moved(const Action& action, bool to_device, bool copied) {
  // What should be in its place already copies nothing.
  if (out_ == nullptr || action.touch || action.in_place) return;
  const auto add = [&](uint64_t* row, uint64_t* all) {
    *row += action.bytes, *all += action.bytes;
  };
  if (to_device) {
    add(&current_.in_bytes, &out_->in_bytes);
  } else if (copied) {
    add(&current_.out_bytes, &out_->out_bytes);
  } else {
    add(&current_.dropped_bytes, &out_->dropped_bytes);
  }
}

void LoopRecord::StartMeasuring(std::shared_ptr<const Schedule> schedule, uint64_t capacity) {
  if (out_ == nullptr) return;
  submitted_.assign(schedule->length, {});
  schedule_ = std::move(schedule);
  capacity_ = capacity;
}

void LoopRecord::Launch(uint32_t position, const LaunchView& launch, uint64_t resident) {
  if (position >= submitted_.size()) return;
  if (position == 0) {
    measured_row_ = out_->rows;
    measured_phase_ = current_.phase;
  }
  submitted_[position] = {launch.name, resident};
}

// Over all measured iterations of a phase: what a launch takes when nothing disturbs it.
void LoopRecord::KeepBest(const std::vector<double>& seconds) {
  if (best_phase_ != measured_phase_ || best_.size() != seconds.size()) best_ = seconds;
  best_phase_ = measured_phase_;
  for (size_t i = 0; i < seconds.size(); ++i) best_[i] = std::min(best_[i], seconds[i]);
}

void LoopRecord::Measured(const Times& times, const policy::LinkRates& link,
                          const LinkMeter::Log& moves) {
  const size_t length = submitted_.size();
  if (out_ == nullptr || length == 0 || times.seconds->size() != length ||
      schedule_->trace->launches.size() != length) {
    return;
  }
  // The iteration that is shown is one of the phase in which the program spends most of its time.
  if (out_->snapshots > 0 && TimeIn(measured_phase_) < TimeIn(shown_phase_)) return;
  KeepBest(*times.seconds);
  Parts parts;
  AddTensors(*schedule_, &parts);
  Names names(&parts.names);
  for (size_t i = 0; i < length; ++i) {
    RunRecordLaunch launch{};
    launch.begin = (*times.offsets)[i];
    launch.end = launch.begin + (*times.seconds)[i];
    launch.best = best_[i];
    launch.resident_bytes = submitted_[i].resident;
    launch.name = names.At(submitted_[i].name);
    launch.first_use = static_cast<uint32_t>(parts.uses.size());
    AddUses(schedule_->trace->launches[i], &parts.uses);
    launch.uses = static_cast<uint32_t>(parts.uses.size()) - launch.first_use;
    parts.launches.push_back(launch);
  }
  for (const LinkMeter::Logged& m : moves.moves) {
    parts.moves.push_back({m.begin_ns, m.end_ns, m.bytes, m.to_device, 0});
  }
  RunRecordSnapshot snapshot{};
  snapshot.row = measured_row_;
  snapshot.phase = measured_phase_;
  snapshot.cut = moves.cut;
  snapshot.capacity_bytes = capacity_;
  snapshot.h2d = link.h2d;
  snapshot.d2h = link.d2h;
  snapshot.duplex_h2d = link.duplex_h2d;
  snapshot.duplex_d2h = link.duplex_d2h;
  snapshot.begin_ns = times.begin_ns;
  submitted_.clear();
  if (WriteSnapshot(parts, snapshot, ReserveSnapshot(device_, out_->snapshots, parts.bytes()))) {
    shown_phase_ = measured_phase_;
    Publish(&out_->snapshots, out_->snapshots + 1);
  }
}

void LoopRecord::EndedReadMostly(const Allocation& allocation) {
  Note(false, "allocation %llu (%s) was written to although it had only been read: %s",
       static_cast<unsigned long long>(allocation.id), HumanBytes(allocation.bytes).text(),
       allocation.read_mostly_broken == 1 ? "its advice ended" : "it is copied back from now on");
}

void LoopRecord::Note(bool off, const char* format, ...) {
  if (out_ == nullptr) return;
  if (off) out_->off = 1;
  RunRecordNote& note = out_->note[out_->notes % protocol::kRunRecordNotes];
  note.row = out_->rows;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(note.text, sizeof note.text, format, arguments);
  va_end(arguments);
  Publish(&out_->notes, out_->notes + 1);
}

}  // namespace atp::shim
