// SPDX-License-Identifier: Apache-2.0
// The record of a run: a small file that the shim keeps mapped while memory moves, so that a
// report can be made of a live process, and of one that was killed. Native byte order and
// alignment: the file never leaves the machine that wrote it. Laid out as
//
//   RunRecordHeader, padded to kRunRecordPage
//   for each device ordinal a stride of kRunRecordStride bytes (a hole while `used` is 0):
//     RunRecordDevice, padded to a page
//     two areas of kRunRecordSnapshotBytes, used in turns: the newest measured iteration
//
// Everything that grows is written before its count, so that whatever a count covers is whole, in
// whichever moment the writer dies. Who writes: shim/run_record; who reads: run_record_reader.h.
#pragma once

#include <cstdint>

namespace atp::protocol {

inline constexpr char kRunRecordMagic[8] = {'A', 'T', 'P', '-', 'R', 'U', 'N', '\n'};
inline constexpr uint32_t kRunRecordVersion = 1;  // raised with every change of this file
inline constexpr uint64_t kRunRecordPage = 4096;
inline constexpr uint32_t kRunRecordRows = 512, kRunRecordNotes = 32, kRunRecordDevices = 64;
inline constexpr uint64_t kRunRecordSnapshotBytes = 4u << 20;

struct RunRecordHeader {
  char magic[8];
  uint32_t version;
  uint32_t device_bytes;  // sizeof(RunRecordDevice)
  int32_t pid;
  uint32_t simulated;  // 1: times are virtual, of the simulated machine
  uint32_t ended;      // 1: the process has ended as it wanted, and made its page itself
  uint32_t unused;
  uint64_t started_ns;    // since 1970
  char command[512];      // arguments joined by spaces, cut
  char report_file[512];  // where a page is wanted at the end (ATP_REPORT), or empty
};

// An iteration whose launches have all been submitted.
struct RunRecordRow {
  uint64_t at_ns, ended_ns;      // its start and the next one's on the shim's clock; 0 = not known
  double seconds;                // by the device's events; 0 = not known
  uint32_t plan;                 // number of the plan by which it ran; 0 = plain managed memory
  uint32_t phase;                // as policy::PeriodState
  uint64_t in_bytes, out_bytes;  // copied by moves issued during it
  uint64_t dropped_bytes;        // left the device without a copy
};

// Something was switched off or given up, and why.
struct RunRecordNote {
  uint64_t row;  // rows written before it
  char text[152];
};

struct RunRecordDevice {
  uint32_t used;
  int32_t ordinal;
  char name[96];
  uint64_t total_bytes, budget_bytes;
  uint64_t capacity_bytes;  // the budget less head-room
  uint64_t managed_bytes, native_bytes;
  uint32_t off;     // no hints any more: the last note says why
  uint32_t phases;  // different ones that were planned
  uint64_t plans, breaks;
  uint64_t in_bytes, out_bytes, dropped_bytes;  // in all
  uint64_t rows, notes, snapshots;              // written so far; the newest of each are kept
  RunRecordRow row[kRunRecordRows];             // row i is at i % kRunRecordRows
  RunRecordNote note[kRunRecordNotes];
};

// A measured iteration; snapshot i is in area i % 2. Followed without gaps by `launches`
// RunRecordLaunch, `tensors` RunRecordTensor, `moves` RunRecordMove, `uses` uint32_t and
// `name_bytes` characters.
struct RunRecordSnapshot {
  uint64_t row;  // rows written before the measured one
  uint32_t phase;
  uint32_t launches, tensors, moves, uses, name_bytes;
  uint32_t cut, unused;                     // cut: 1 = it made more moves than were kept
  uint64_t capacity_bytes;                  // for managed memory, of this plan
  double h2d, d2h, duplex_h2d, duplex_d2h;  // the link as measured, bytes per second; 0 = not known
  uint64_t begin_ns;  // the first launch's start on the shim's clock; 0 = not known
};

struct RunRecordLaunch {
  double begin, end;        // seconds from the first launch's begin, by the device's events
  double best;              // the shortest of all measured ones of this position
  uint64_t resident_bytes;  // the shim's account when it was submitted
  uint32_t name;            // where its name begins among the names; each ends with a 0
  uint32_t first_use, uses;
  uint32_t unused;
};

struct RunRecordTensor {                        // a part of an allocation that is used together
  uint64_t id, bytes;                           // of the program's allocation; of the part
  uint64_t in_bytes, out_bytes, dropped_bytes;  // by the plan, in a period
  uint32_t written;                             // 1: by some launch of the period
  uint32_t first_block;                         // where the part begins, in blocks of 2 MiB
};

struct RunRecordMove {
  uint64_t begin_ns, end_ns;  // on the link, on the shim's clock
  uint64_t bytes;
  uint32_t to_device, unused;
};

// A use is the tensor's index * 4 + kRunRecordReads + kRunRecordWrites.
inline constexpr uint32_t kRunRecordReads = 1, kRunRecordWrites = 2;

inline constexpr uint64_t kRunRecordFixed =
    (sizeof(RunRecordDevice) + kRunRecordPage - 1) / kRunRecordPage * kRunRecordPage;
inline constexpr uint64_t kRunRecordStride = kRunRecordFixed + 2 * kRunRecordSnapshotBytes;

inline constexpr uint64_t RunRecordDeviceAt(uint32_t ordinal) {
  return kRunRecordPage + ordinal * kRunRecordStride;
}
inline constexpr uint64_t RunRecordSnapshotAt(uint64_t snapshot) {  // within a device's stride
  return kRunRecordFixed + snapshot % 2 * kRunRecordSnapshotBytes;
}

static_assert(sizeof(RunRecordHeader) <= kRunRecordPage);

}  // namespace atp::protocol
