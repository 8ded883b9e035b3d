// SPDX-License-Identifier: Apache-2.0
// Copies: the bytes move at once, the machine is told what moved.
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/host_touches.h"
#include "sim/driver/places.h"

namespace atp::sim {
namespace {

// Bytes from the first to one past the last that one side of a copy spans.
uint64_t Span(uint64_t pitch, uint64_t slice, const CopyTask& task) {
  return (task.depth - 1) * slice + (task.height - 1) * pitch + task.width;
}

CopyKind KindOf(const CopyTask& task, const Place& source, const Place& destination) {
  if (source.IsHost() && destination.IsHost()) return CopyKind::kHostToHost;
  if (source.IsHost()) return CopyKind::kHostToDevice;
  if (destination.IsHost()) return CopyKind::kDeviceToHost;
  const bool managed = source.IsManaged() || destination.IsManaged();
  const bool two_devices = !managed && source.allocation->device != destination.allocation->device;
  return two_devices || (task.peer && !managed && two_devices) ? CopyKind::kPeer
                                                               : CopyKind::kDeviceToDevice;
}

void MoveRow(const Memory& memory, uint64_t destination, uint64_t source, uint64_t bytes) {
  ForEachPiece(memory, destination, bytes, [&](uint8_t* to, uint64_t piece) {
    ForEachPiece(memory, source, piece, [&](const uint8_t* from, uint64_t part) {
      std::memmove(to, from, part);
      to += part;
    });
    source += piece;
  });
}

void MoveBytes(const Memory& memory, const CopyTask& task) {
  for (uint64_t z = 0; z < task.depth; ++z) {
    for (uint64_t y = 0; y < task.height; ++y) {
      MoveRow(memory, task.destination + z * task.destination_slice + y * task.destination_pitch,
              task.source + z * task.source_slice + y * task.source_pitch, task.width);
    }
  }
}

}  // namespace

CUresult CheckCopy(Driver& driver, const Context& context, const CopyTask& task) {
  if (task.bytes() == 0) return CUDA_SUCCESS;
  const bool overlapping_rows =
      (task.height > 1 || task.depth > 1) &&
      (task.source_pitch < task.width || task.destination_pitch < task.width);
  if (overlapping_rows) return CUDA_ERROR_INVALID_VALUE;
  Place place;
  const uint64_t source_span = Span(task.source_pitch, task.source_slice, task);
  const uint64_t destination_span = Span(task.destination_pitch, task.destination_slice, task);
  const bool valid = Locate(driver.memory(), context, task.source, source_span, &place) &&
                     Locate(driver.memory(), context, task.destination, destination_span, &place) &&
                     (!place.allocation || place.allocation->writable);
  return valid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult RunCopy(Driver& driver, Lane lane, Stream& stream, const CopyTask& task) {
  if (task.bytes() == 0) return CUDA_SUCCESS;
  if (const CUresult result = CheckCopy(driver, *stream.context, task); result != CUDA_SUCCESS)
    return result;  // memory may have been freed since a graph was made
  const Memory& memory = driver.memory();
  Place source, destination;
  const uint64_t source_span = Span(task.source_pitch, task.source_slice, task);
  const uint64_t destination_span = Span(task.destination_pitch, task.destination_slice, task);
  Locate(memory, *stream.context, task.source, source_span, &source);
  Locate(memory, *stream.context, task.destination, destination_span, &destination);
  if (source.IsManaged()) CollectHostTouches(driver, lane, task.source, task.source + source_span);
  if (destination.IsManaged())
    CollectHostTouches(driver, lane, task.destination, task.destination + destination_span);
  MoveBytes(memory, task);
  for (uint64_t z = 0; z < task.depth; ++z) {
    for (uint64_t y = 0; y < task.height; ++y)
      driver.memory().NoteWritten(
          task.destination + z * task.destination_slice + y * task.destination_pitch, task.width);
  }
  CopyWork work;
  work.kind = KindOf(task, source, destination);
  work.bytes = task.bytes();
  work.source = source.ModelAddress(task.source);
  work.destination = destination.ModelAddress(task.destination);
  work.pageable_host = source.IsPageable() || destination.IsPageable();
  driver.trace().Copied(stream, task, work.kind);
  driver.machine().SubmitCopy(lane, stream.id, work);
  return Health(driver, *stream.context);
}

}  // namespace atp::sim
