// SPDX-License-Identifier: Apache-2.0
#include "protocol/run_record_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace atp::protocol {
namespace {

template <size_t N>
void Terminate(char (&text)[N]) {
  text[N - 1] = '\0';
}

// Takes parts of a byte range one behind the other; never reads past its end.
class Cursor {
 public:
  explicit Cursor(std::span<const char> bytes) : bytes_(bytes) {}
  template <typename T>
  bool Take(uint64_t count, std::vector<T>* out) {
    if (count > bytes_.size() / sizeof(T)) return false;
    out->resize(count);
    if (count > 0) std::memcpy(out->data(), bytes_.data(), count * sizeof(T));
    bytes_ = bytes_.subspan(count * sizeof(T));
    return true;
  }

 private:
  std::span<const char> bytes_;
};

bool IsTime(double seconds) { return std::isfinite(seconds) && seconds >= 0 && seconds < 1e9; }

std::string Check(const MeasuredIteration& m) {
  for (const RunRecordLaunch& launch : m.launches) {
    if (!IsTime(launch.best) || !IsTime(launch.begin) || !IsTime(launch.end)) {
      return "a launch has no sensible times";
    }
    if (launch.name >= m.names.size()) return "a launch names what is not there";
    if (launch.first_use > m.uses.size() || launch.uses > m.uses.size() - launch.first_use) {
      return "a launch uses what is not there";
    }
  }
  for (uint32_t use : m.uses) {
    if (use / 4 >= m.tensors.size()) return "a launch touches a tensor that is not there";
  }
  constexpr uint64_t kMostBytes = uint64_t{1} << 50;
  for (const RunRecordTensor& tensor : m.tensors) {
    if (std::max({tensor.bytes, tensor.in_bytes, tensor.out_bytes, tensor.dropped_bytes}) >
        kMostBytes) {
      return "a tensor has no sensible size";
    }
  }
  for (double rate : {m.head.h2d, m.head.d2h, m.head.duplex_h2d, m.head.duplex_d2h}) {
    if (!std::isfinite(rate) || rate < 0) return "a rate of the link makes no sense";
  }
  return m.names.empty() || m.names.back() != '\0' ? "the names do not end" : "";
}

std::string ReadSnapshot(std::span<const char> area, MeasuredIteration* m) {
  if (area.size() < sizeof m->head) return "cut off in a measured iteration";
  std::memcpy(&m->head, area.data(), sizeof m->head);
  Cursor cursor(area.subspan(sizeof m->head));
  std::vector<char> names;
  if (!cursor.Take(m->head.launches, &m->launches) || !cursor.Take(m->head.tensors, &m->tensors) ||
      !cursor.Take(m->head.moves, &m->moves) || !cursor.Take(m->head.uses, &m->uses) ||
      !cursor.Take(m->head.name_bytes, &names)) {
    return "cut off in a measured iteration";
  }
  m->names.assign(names.begin(), names.end());
  return Check(*m);
}

std::string ReadDevice(std::span<const char> part, DeviceRun* device) {
  RunRecordDevice& facts = device->facts;
  Terminate(facts.name);
  // The oldest of a full ring may be under the writer's pen.
  const uint64_t rows = std::min<uint64_t>(facts.rows, kRunRecordRows - 1);
  device->first_row = facts.rows - rows;
  for (uint64_t i = device->first_row; i < facts.rows; ++i) {
    RunRecordRow row = facts.row[i % kRunRecordRows];
    if (!IsTime(row.seconds)) row.seconds = 0;
    device->rows.push_back(row);
  }
  const uint64_t notes = std::min<uint64_t>(facts.notes, kRunRecordNotes - 1);
  for (uint64_t i = facts.notes - notes; i < facts.notes; ++i) {
    device->notes.push_back(facts.note[i % kRunRecordNotes]);
    Terminate(device->notes.back().text);
  }
  if (facts.snapshots == 0) return "";
  const uint64_t at = RunRecordSnapshotAt(facts.snapshots - 1);
  if (at > part.size()) return "cut off before a measured iteration";
  device->measured.emplace();
  return ReadSnapshot(part.subspan(at, std::min(kRunRecordSnapshotBytes, part.size() - at)),
                      &*device->measured);
}

}  // namespace

std::string MeasuredIteration::NameOf(const RunRecordLaunch& launch) const {
  const char* name = names.c_str() + launch.name;
  return *name == '\0' ? "(unnamed)" : name;
}

std::string ReadRunRecord(std::span<const char> bytes, RunRecord* run) {
  *run = {};
  if (bytes.size() < sizeof run->header ||
      std::memcmp(bytes.data(), kRunRecordMagic, sizeof kRunRecordMagic) != 0) {
    return "not the record of a run";
  }
  std::memcpy(&run->header, bytes.data(), sizeof run->header);
  const RunRecordHeader& header = run->header;
  if (header.version != kRunRecordVersion || header.device_bytes != sizeof(RunRecordDevice)) {
    return "a record of version " + std::to_string(header.version) + ", and this reads version " +
           std::to_string(kRunRecordVersion) + ": use the atp that belongs to that libatpshim.so";
  }
  Terminate(run->header.command);
  Terminate(run->header.report_file);
  for (uint32_t ordinal = 0; ordinal < kRunRecordDevices; ++ordinal) {
    const uint64_t at = RunRecordDeviceAt(ordinal);
    if (at + sizeof(RunRecordDevice) > bytes.size()) break;
    const auto part = bytes.subspan(at, std::min(kRunRecordStride, bytes.size() - at));
    DeviceRun device;
    std::memcpy(&device.facts, part.data(), sizeof device.facts);
    if (device.facts.used != 1) continue;
    const std::string wrong = ReadDevice(part, &device);
    if (!wrong.empty()) return "device " + std::to_string(ordinal) + ": " + wrong;
    run->devices.push_back(std::move(device));
  }
  return "";
}

}  // namespace atp::protocol
