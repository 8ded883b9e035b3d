// SPDX-License-Identifier: Apache-2.0
// A record by hand: one device, iterations of 100 ms by plan after one of 400 ms without, and one
// of them measured: four launches of 20 ms, "load", "forward", "backward", "update". In front of
// "forward" 10 ms of copies to the device, in front of "update" 6 ms of copies to the host, and 4
// ms of nothing behind it.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "protocol/run_record.h"

namespace atp::protocol {

inline constexpr uint64_t kSampleMiB = 1u << 20;
inline constexpr uint64_t kSampleBegin = 5'000'000'000;  // of the measured iteration, ns

struct SampleSnapshot {
  RunRecordSnapshot head{};
  std::vector<RunRecordLaunch> launches;
  std::vector<RunRecordTensor> tensors;
  std::vector<RunRecordMove> moves;
  std::vector<uint32_t> uses;
  std::string names;

  std::vector<char> Bytes() {
    head.launches = static_cast<uint32_t>(launches.size());
    head.tensors = static_cast<uint32_t>(tensors.size());
    head.moves = static_cast<uint32_t>(moves.size());
    head.uses = static_cast<uint32_t>(uses.size());
    head.name_bytes = static_cast<uint32_t>(names.size());
    std::vector<char> bytes;
    const auto put = [&](const void* data, size_t size) {
      const char* begin = static_cast<const char*>(data);
      bytes.insert(bytes.end(), begin, begin + size);
    };
    put(&head, sizeof head);
    put(launches.data(), launches.size() * sizeof launches[0]);
    put(tensors.data(), tensors.size() * sizeof tensors[0]);
    put(moves.data(), moves.size() * sizeof moves[0]);
    put(uses.data(), uses.size() * sizeof uses[0]);
    put(names.data(), names.size());
    return bytes;
  }
};

inline SampleSnapshot SampleMeasured() {
  SampleSnapshot s;
  s.head.row = 2;
  s.head.capacity_bytes = 300 * kSampleMiB;
  s.head.h2d = s.head.d2h = 20e9;
  s.head.begin_ns = kSampleBegin;
  const auto launch = [&](double begin, const char* name, std::vector<uint32_t> uses) {
    const uint32_t at = static_cast<uint32_t>(s.names.size());
    s.names.append(name, std::strlen(name) + 1);
    s.launches.push_back({begin, begin + 0.020, 0.020, 300 * kSampleMiB, at,
                          static_cast<uint32_t>(s.uses.size()), static_cast<uint32_t>(uses.size()),
                          0});
    s.uses.insert(s.uses.end(), uses.begin(), uses.end());
  };
  launch(0.000, "load", {0 * 4 + kRunRecordReads});
  launch(0.030, "forward", {1 * 4 + kRunRecordReads, 2 * 4 + kRunRecordWrites});
  launch(0.050, "backward", {2 * 4 + kRunRecordReads});
  launch(0.076, "update", {0 * 4 + kRunRecordReads + kRunRecordWrites});
  s.tensors = {{11, 200 * kSampleMiB, 0, 0, 0, 1, 0},
               {12, 100 * kSampleMiB, 100 * kSampleMiB, 0, 100 * kSampleMiB, 0, 0},
               {13, 100 * kSampleMiB, 60 * kSampleMiB, 60 * kSampleMiB, 0, 1, 0}};
  const auto move = [&](double begin, double end, uint64_t mib, bool to_device) {
    s.moves.push_back({kSampleBegin + static_cast<uint64_t>(begin * 1e9),
                       kSampleBegin + static_cast<uint64_t>(end * 1e9), mib * kSampleMiB, to_device,
                       0});
  };
  move(0.015, 0.030, 100, true);
  move(0.018, 0.022, 20, false);  // beside one to the device
  move(0.065, 0.076, 40, false);
  return s;
}

inline std::vector<char> SampleRecord(SampleSnapshot measured = SampleMeasured()) {
  std::vector<char> bytes(RunRecordDeviceAt(1));
  RunRecordHeader header{};
  std::memcpy(header.magic, kRunRecordMagic, sizeof header.magic);
  header.version = kRunRecordVersion;
  header.device_bytes = sizeof(RunRecordDevice);
  header.pid = 4711;
  std::strcpy(header.command, "./train --size 3");
  std::strcpy(header.report_file, "/tmp/run.html");
  std::memcpy(bytes.data(), &header, sizeof header);

  RunRecordDevice device{};
  device.used = 1;
  std::strcpy(device.name, "Sample");
  device.total_bytes = device.budget_bytes = 320 * kSampleMiB;
  device.capacity_bytes = 300 * kSampleMiB;
  device.managed_bytes = 450 * kSampleMiB;
  device.plans = device.phases = 1;
  device.rows = 6;
  device.row[0] = {0, 0, 0.4, 0, 0, 0, 0, 0};
  for (uint64_t i = 1; i < device.rows; ++i) {
    const uint64_t at = kSampleBegin + (i - 2) * 100'000'000;
    device.row[i] = {
        at, at + 100'000'000, 0.1, 1, 0, 160 * kSampleMiB, 60 * kSampleMiB, 100 * kSampleMiB};
  }
  device.row[4].seconds = 0;  // known by the host's clock only
  device.notes = 1;
  device.note[0].row = 3;
  std::strcpy(device.note[0].text, "allocation 13 is copied back from now on");
  device.snapshots = 1;
  std::memcpy(bytes.data() + RunRecordDeviceAt(0), &device, sizeof device);
  const std::vector<char> snapshot = measured.Bytes();
  std::memcpy(bytes.data() + RunRecordDeviceAt(0) + RunRecordSnapshotAt(0), snapshot.data(),
              snapshot.size());
  return bytes;
}

}  // namespace atp::protocol
