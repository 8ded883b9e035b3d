// SPDX-License-Identifier: Apache-2.0
// Writes the binary form of a trace while a program runs. Appending a launch copies a few words;
// every few thousand rows a chunk goes to the sink, on the thread that appended. Memory is bounded
// by one chunk and the strings. One thread at a time: callers lock. bench/protocol measures the
// cost of an event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "protocol/trace_file.h"

namespace atp::protocol {

class TraceWriter {
 public:
  // Gets whole chunks. False = it could not take it; the writer then drops rows and says so by
  // `failed()`.
  using Sink = std::function<bool(const uint8_t* data, size_t bytes)>;

  TraceWriter(const TraceHeader& header, Sink sink);
  ~TraceWriter();  // flushes
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  // A number for a string; the same one for the same string. Callers keep it: names repeat.
  uint32_t String(std::string_view text);

  void Allocate(const AllocationRow& allocation);
  void Free(const FreeRow& free);
  void Mark(const MarkRow& mark);
  // Touches and uses are copied; the row's own counts and places of them are ignored. What a row
  // names (strings, allocations, tensors) must have been written before it, or the reader refuses
  // the file.
  void Launch(const LaunchRow& launch, std::span<const TouchRow> touches);
  void Tensor(const TensorRow& tensor);
  void Step(const StepRow& step, std::span<const uint32_t> reads, std::span<const uint32_t> writes);

  void Flush();
  bool failed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All of it, as one call.
bool WriteTrace(const TraceFile& trace, const TraceWriter::Sink& sink);

}  // namespace atp::protocol
