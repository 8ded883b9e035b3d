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

  void Allocate(uint64_t id, uint64_t bytes, uint64_t at, int32_t device, uint32_t kind);
  void Free(uint64_t id, uint64_t at);
  void Mark(uint32_t text, uint64_t at);
  // The touches are copied. `first_touch` and `touches` of the row are ignored.
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
