// SPDX-License-Identifier: Apache-2.0
// Sets: the bytes are written at once, the machine is told.
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/host_touches.h"
#include "sim/driver/places.h"

namespace atp::sim {
namespace {

uint64_t Span(const SetTask& task) {
  return (task.height - 1) * task.pitch + task.width * task.element_bytes;
}

void Fill(uint8_t* at, uint64_t bytes, const SetTask& task) {
  if (task.element_bytes == 1) {
    std::memset(at, static_cast<int>(task.value), bytes);
    return;
  }
  for (uint64_t i = 0; i < bytes; i += task.element_bytes)
    std::memcpy(at + i, &task.value, task.element_bytes);
}

}  // namespace

CUresult CheckSet(Driver& driver, const Context& context, const SetTask& task) {
  if (task.destination % task.element_bytes != 0) return CUDA_ERROR_INVALID_VALUE;
  if (task.width == 0 || task.height == 0) return CUDA_SUCCESS;
  if (task.height > 1 && task.pitch < task.width * task.element_bytes)
    return CUDA_ERROR_INVALID_VALUE;
  Place place;
  const bool valid = Locate(driver.memory(), context, task.destination, Span(task), &place);
  return valid && place.allocation && place.allocation->writable ? CUDA_SUCCESS
                                                                 : CUDA_ERROR_INVALID_VALUE;
}

CUresult RunSet(Driver& driver, Lane lane, Stream& stream, const SetTask& task) {
  if (task.width == 0 || task.height == 0) return CUDA_SUCCESS;
  if (const CUresult result = CheckSet(driver, *stream.context, task); result != CUDA_SUCCESS)
    return result;
  Place place;
  Locate(driver.memory(), *stream.context, task.destination, Span(task), &place);
  if (place.IsManaged())
    CollectHostTouches(driver, lane, task.destination, task.destination + Span(task));
  for (uint64_t y = 0; y < task.height; ++y) {
    ForEachPiece(driver.memory(), task.destination + y * task.pitch,
                 task.width * task.element_bytes,
                 [&](uint8_t* at, uint64_t bytes) { Fill(at, bytes, task); });
    driver.memory().NoteWritten(task.destination + y * task.pitch, task.width * task.element_bytes);
  }
  CopyWork work;
  work.kind = CopyKind::kSet;
  work.bytes = task.width * task.height * task.element_bytes;
  work.destination = place.ModelAddress(task.destination);
  driver.trace().Set(stream, task);
  driver.machine().SubmitCopy(lane, stream.id, work);
  return Health(driver, *stream.context);
}

}  // namespace atp::sim
