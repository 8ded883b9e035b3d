// SPDX-License-Identifier: Apache-2.0
#include "protocol/learned.h"

#include <algorithm>
#include <cmath>

#include "daemon_generated.h"

namespace atp::protocol {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

// A table of many small vectors may be much larger when it is unpacked.
constexpr uint32_t kMostTables = 1u << 16;

Offset<wire::Fingerprint> Add(const Fingerprint& f, FlatBufferBuilder* to) {
  const auto device = to->CreateString(f.device);
  const auto code = to->CreateVector(f.code);
  const auto allocations = to->CreateVector(f.allocations);
  return wire::CreateFingerprint(*to, device, f.device_bytes, f.capacity_bytes, code, allocations);
}

Offset<wire::LearnedPhase> Add(const LearnedPhase& phase, FlatBufferBuilder* to) {
  std::vector<wire::LearnedLaunch> launches;
  std::vector<uint32_t> uses;
  for (const LearnedLaunch& l : phase.launches) {
    launches.emplace_back(l.signature, l.identity, l.seconds, static_cast<uint32_t>(l.reads.size()),
                          static_cast<uint32_t>(l.writes.size()));
    uses.insert(uses.end(), l.reads.begin(), l.reads.end());
    uses.insert(uses.end(), l.writes.begin(), l.writes.end());
  }
  std::vector<wire::LearnedTensor> tensors;
  for (const LearnedTensor& t : phase.tensors)
    tensors.emplace_back(t.bytes, t.offset, t.length, t.slot, 0);
  const auto launch_rows = to->CreateVectorOfStructs(launches);
  const auto use_rows = to->CreateVector(uses);
  const auto tensor_rows = to->CreateVectorOfStructs(tensors);
  const auto before = to->CreateVector(phase.before);
  return wire::CreateLearnedPhase(*to, launch_rows, use_rows, tensor_rows, before,
                                  phase.capacity_bytes, phase.best_seconds, phase.plain_seconds,
                                  phase.bound_seconds, phase.periods);
}

std::vector<uint8_t> Bytes(const FlatBufferBuilder& from) {
  return {from.GetBufferPointer(), from.GetBufferPointer() + from.GetSize()};
}

std::string Text(const flatbuffers::String* text) { return text != nullptr ? text->str() : ""; }

bool GoodNumber(double value) { return std::isfinite(value) && value >= 0; }

// The verifier checks that rows lie inside, not that they lie where 64-bit numbers may.
template <typename Rows>
bool Misplaced(const Rows* rows) {
  return rows != nullptr && rows->size() > 0 && reinterpret_cast<uintptr_t>(rows->Data()) % 8 != 0;
}

bool Copy(const flatbuffers::Vector<uint64_t>* rows, std::vector<uint64_t>* out) {
  if (Misplaced(rows)) return false;
  if (rows != nullptr) out->assign(rows->begin(), rows->end());
  return true;
}

template <typename Table>
const Table* Verified(std::span<const uint8_t> bytes) {
  if (bytes.size() > kMostLearnedBytes) return nullptr;
  flatbuffers::Verifier verifier(bytes.data(), bytes.size(), /*max_depth=*/8, kMostTables);
  return verifier.VerifyBuffer<Table>(nullptr) ? flatbuffers::GetRoot<Table>(bytes.data())
                                               : nullptr;
}

// These return what is wrong; null = nothing.
const char* Take(const wire::Fingerprint& from, Fingerprint* out) {
  *out = {Text(from.device()), from.device_bytes(), from.capacity_bytes(), {}, {}};
  if (!Copy(from.code(), &out->code) || !Copy(from.allocations(), &out->allocations)) {
    return "rows that are not aligned";
  }
  std::sort(out->code.begin(), out->code.end());
  return nullptr;
}

const char* TakeLaunches(const wire::LearnedPhase& from, LearnedPhase* out) {
  const size_t uses = from.uses() != nullptr ? from.uses()->size() : 0;
  size_t taken = 0;
  const auto take = [&](uint32_t count, std::vector<uint32_t>* list) {
    if (count > uses - taken) return false;
    for (; count > 0; --count) {
      const uint32_t tensor = from.uses()->Get(static_cast<uint32_t>(taken++));
      if (tensor >= out->tensors.size()) return false;
      list->push_back(tensor);
    }
    return true;
  };
  for (const auto* row : *from.launches()) {
    if (!GoodNumber(row->seconds())) return "a time is not a number";
    LearnedLaunch& launch = out->launches.emplace_back();
    launch.signature = row->signature();
    launch.identity = row->identity();
    launch.seconds = row->seconds();
    if (!take(row->reads(), &launch.reads) || !take(row->writes(), &launch.writes)) {
      return "a launch uses a tensor that is not there";
    }
  }
  return taken == uses ? nullptr : "uses that belong to no launch";
}

const char* Take(const wire::LearnedPhase& from, LearnedPhase* out) {
  if (from.launches() == nullptr || from.launches()->size() == 0) return "a phase without launches";
  if (Misplaced(from.launches()) || Misplaced(from.tensors())) return "rows that are not aligned";
  if (from.tensors() != nullptr) {
    for (const auto* row : *from.tensors()) {
      if (row->length() == 0 || row->offset() > row->bytes() ||
          row->length() > row->bytes() - row->offset()) {
        return "a part that lies outside its allocation";
      }
      out->tensors.push_back({row->bytes(), row->offset(), row->length(), row->slot()});
    }
  }
  if (!Copy(from.before(), &out->before)) return "rows that are not aligned";
  out->capacity_bytes = from.capacity_bytes();
  out->best_seconds = from.best_seconds();
  out->plain_seconds = from.plain_seconds();
  out->bound_seconds = from.bound_seconds();
  out->periods = from.periods();
  if (!GoodNumber(out->best_seconds) || !GoodNumber(out->plain_seconds) ||
      !GoodNumber(out->bound_seconds)) {
    return "a time is not a number";
  }
  return TakeLaunches(from, out);
}

bool Copy(const wire::Tuning* from, Tuning* out) {
  if (from == nullptr) return true;
  out->head_room_bytes = from->head_room_bytes();
  out->duration_spread = from->duration_spread();
  out->call_seconds = from->call_seconds();
  return GoodNumber(out->duration_spread) && GoodNumber(out->call_seconds);
}

bool Copy(const flatbuffers::Vector<const wire::Choice*>* from, std::vector<Tuning>* out) {
  if (Misplaced(from)) return false;
  for (uint32_t i = 0; from != nullptr && i < from->size(); ++i) {
    const wire::Choice& c = *from->Get(i);
    out->push_back({c.head_room_bytes(), c.duration_spread(), c.call_seconds(), c.link_scale()});
    for (const double value : {c.duration_spread(), c.call_seconds(), c.link_scale()}) {
      if (!GoodNumber(value)) return false;
    }
  }
  return true;
}

const char* TakeTuning(const wire::Learned& from, Learned* out) {
  out->tuning.link_scale = from.tuning_link_scale();
  out->candidate.link_scale = from.candidate_link_scale();
  if (!Copy(from.tuning(), &out->tuning) || !Copy(from.candidate(), &out->candidate) ||
      !GoodNumber(from.tuning_link_scale()) || !GoodNumber(from.candidate_link_scale()) ||
      !Copy(from.further(), &out->further) || !Copy(from.rejected(), &out->rejected)) {
    return "a choice is not a number";
  }
  if (from.trial() > static_cast<uint32_t>(TrialState::kLost))
    return "in an unknown state of trial";
  out->trial = static_cast<TrialState>(from.trial());
  out->before_seconds = from.before_seconds();
  out->trial_seconds = from.trial_seconds();
  out->budget_bytes = from.budget_bytes();
  const bool good = GoodNumber(out->before_seconds) && GoodNumber(out->trial_seconds);
  return good ? nullptr : "a time is not a number";
}

const char* Take(const wire::Learned& from, Learned* out) {
  if (from.version() != kLearnedVersion) return "of another version";
  if (from.fingerprint() == nullptr) return "without a fingerprint";
  if (const char* wrong = Take(*from.fingerprint(), &out->fingerprint)) return wrong;
  out->command = Text(from.command());
  out->h2d = from.h2d_bytes_per_s();
  out->d2h = from.d2h_bytes_per_s();
  out->duplex_h2d = from.duplex_h2d_bytes_per_s();
  out->duplex_d2h = from.duplex_d2h_bytes_per_s();
  for (const double rate : {out->h2d, out->d2h, out->duplex_h2d, out->duplex_d2h}) {
    if (!GoodNumber(rate)) return "a rate is not a number";
  }
  if (from.phases() != nullptr) {
    for (const auto* row : *from.phases()) {
      if (const char* wrong = Take(*row, &out->phases.emplace_back())) return wrong;
    }
  }
  return TakeTuning(from, out);
}

template <typename Table, typename Value>
bool ReadTable(std::span<const uint8_t> bytes, Value* value, std::string* error) {
  *value = {};
  const Table* table = Verified<Table>(bytes);
  const char* wrong = table == nullptr ? "not whole" : Take(*table, value);
  if (wrong != nullptr) *error = wrong;
  return wrong == nullptr;
}

}  // namespace

std::vector<uint8_t> Write(const Fingerprint& fingerprint) {
  FlatBufferBuilder to;
  to.Finish(Add(fingerprint, &to));
  return Bytes(to);
}

std::vector<uint8_t> Write(const Learned& learned) {
  FlatBufferBuilder to;
  std::vector<Offset<wire::LearnedPhase>> phases;
  for (const LearnedPhase& phase : learned.phases) phases.push_back(Add(phase, &to));
  const auto fingerprint = Add(learned.fingerprint, &to);
  const auto command = to.CreateString(learned.command);
  const auto phase_rows = to.CreateVector(phases);
  const auto choices = [](const Tuning& t) {
    return wire::Tuning(t.head_room_bytes, t.duration_spread, t.call_seconds);
  };
  const wire::Tuning tuning = choices(learned.tuning), candidate = choices(learned.candidate);
  const auto list = [&](const std::vector<Tuning>& from) {
    std::vector<wire::Choice> rows;
    for (const Tuning& t : from) {
      rows.emplace_back(t.head_room_bytes, t.duration_spread, t.call_seconds, t.link_scale);
    }
    return to.CreateVectorOfStructs(rows);
  };
  const auto further = list(learned.further), rejected = list(learned.rejected);
  to.Finish(wire::CreateLearned(
      to, kLearnedVersion, fingerprint, command, learned.h2d, learned.d2h, learned.duplex_h2d,
      learned.duplex_d2h, phase_rows, &tuning, &candidate, static_cast<uint32_t>(learned.trial),
      learned.before_seconds, learned.trial_seconds, learned.budget_bytes,
      learned.tuning.link_scale, learned.candidate.link_scale, further, rejected));
  return Bytes(to);
}

bool Read(std::span<const uint8_t> bytes, Fingerprint* fingerprint, std::string* error) {
  return ReadTable<wire::Fingerprint>(bytes, fingerprint, error);
}

bool Read(std::span<const uint8_t> bytes, Learned* learned, std::string* error) {
  return ReadTable<wire::Learned>(bytes, learned, error);
}

}  // namespace atp::protocol
