// SPDX-License-Identifier: Apache-2.0
#include "protocol/trace_writer.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "trace_generated.h"

namespace atp::protocol {
namespace {

// Rows in a chunk: large enough that its cost disappears among them, small enough to lose little.
constexpr size_t kChunkRows = 8192;

}  // namespace

struct TraceWriter::Impl {
  Impl(const TraceHeader& h, Sink s) : header(h), sink(std::move(s)) {}

  TraceHeader header;
  Sink sink;
  bool header_written = false, failed = false;
  flatbuffers::FlatBufferBuilder builder{1 << 20};
  std::map<std::string, uint32_t, std::less<>> numbers;
  std::vector<std::string> new_strings;
  std::vector<wire::Allocation> allocations;
  std::vector<wire::Free> frees;
  std::vector<wire::Launch> launches;
  std::vector<wire::Touch> touches;
  std::vector<wire::Mark> marks;
  std::vector<wire::Tensor> tensors;
  std::vector<wire::Step> steps;
  std::vector<uint32_t> uses;

  bool Full() const {
    return launches.size() + allocations.size() + frees.size() + marks.size() + tensors.size() +
                   steps.size() >=
               kChunkRows ||
           touches.size() >= 8 * kChunkRows || uses.size() >= 8 * kChunkRows;
  }
  flatbuffers::Offset<wire::Header> WriteHeader();
  void Flush();
  void Clear();
};

flatbuffers::Offset<wire::Header> TraceWriter::Impl::WriteHeader() {
  return wire::CreateHeaderDirect(builder, header.name.c_str(), header.source.c_str(),
                                  header.device_bytes, header.host_bytes, header.h2d_bytes_per_s,
                                  header.d2h_bytes_per_s, header.duplex_h2d_bytes_per_s,
                                  header.duplex_d2h_bytes_per_s, header.other.c_str());
}

void TraceWriter::Impl::Clear() {
  new_strings.clear();
  allocations.clear();
  frees.clear();
  launches.clear();
  touches.clear();
  marks.clear();
  tensors.clear();
  steps.clear();
  uses.clear();
}

void TraceWriter::Impl::Flush() {
  builder.Clear();
  flatbuffers::Offset<wire::Header> header_offset;
  if (!header_written) header_offset = WriteHeader();
  const auto strings_offset = builder.CreateVectorOfStrings(new_strings);
  const auto allocations_offset = builder.CreateVectorOfStructs(allocations);
  const auto frees_offset = builder.CreateVectorOfStructs(frees);
  const auto launches_offset = builder.CreateVectorOfStructs(launches);
  const auto touches_offset = builder.CreateVectorOfStructs(touches);
  const auto marks_offset = builder.CreateVectorOfStructs(marks);
  const auto tensors_offset = builder.CreateVectorOfStructs(tensors);
  const auto steps_offset = builder.CreateVectorOfStructs(steps);
  const auto uses_offset = builder.CreateVector(uses);
  const auto chunk = wire::CreateChunk(
      builder, kTraceVersion, header_offset, strings_offset, allocations_offset, frees_offset,
      launches_offset, touches_offset, marks_offset, tensors_offset, steps_offset, uses_offset);
  builder.FinishSizePrefixed(chunk, wire::ChunkIdentifier());
  if (!failed) failed = !sink(builder.GetBufferPointer(), builder.GetSize());
  header_written = true;
  Clear();
}

TraceWriter::TraceWriter(const TraceHeader& header, Sink sink)
    : impl_(std::make_unique<Impl>(header, std::move(sink))) {}

TraceWriter::~TraceWriter() {
  const Impl& w = *impl_;
  const bool rows = !w.new_strings.empty() || !w.allocations.empty() || !w.frees.empty() ||
                    !w.launches.empty() || !w.marks.empty() || !w.tensors.empty() ||
                    !w.steps.empty();
  if (rows || !w.header_written) Flush();
}

uint32_t TraceWriter::String(std::string_view text) {
  const auto found = impl_->numbers.find(text);
  if (found != impl_->numbers.end()) return found->second;
  const uint32_t number = static_cast<uint32_t>(impl_->numbers.size());
  impl_->numbers.emplace(text, number);
  impl_->new_strings.emplace_back(text);
  return number;
}

void TraceWriter::Allocate(const AllocationRow& a) {
  impl_->allocations.emplace_back(a.id, a.bytes, a.at, a.device, a.kind, a.extra, 0);
  if (impl_->Full()) Flush();
}

void TraceWriter::Free(const FreeRow& f) {
  impl_->frees.emplace_back(f.id, f.at, f.extra, 0);
  if (impl_->Full()) Flush();
}

void TraceWriter::Mark(const MarkRow& m) {
  impl_->marks.emplace_back(m.at, m.text, m.extra);
  if (impl_->Full()) Flush();
}

void TraceWriter::Launch(const LaunchRow& launch, std::span<const TouchRow> touches) {
  impl_->launches.emplace_back(launch.signature, launch.seconds, launch.name, launch.stream,
                               launch.device, static_cast<uint32_t>(touches.size()), launch.extra,
                               0);
  for (const TouchRow& t : touches) {
    impl_->touches.emplace_back(t.allocation, t.offset, t.bytes, t.access);
  }
  if (impl_->Full()) Flush();
}

void TraceWriter::Tensor(const TensorRow& tensor) {
  impl_->tensors.emplace_back(tensor.bytes, tensor.id, tensor.kind, tensor.global ? 1 : 0,
                              tensor.extra);
  if (impl_->Full()) Flush();
}

void TraceWriter::Step(const StepRow& step, std::span<const uint32_t> reads,
                       std::span<const uint32_t> writes) {
  impl_->steps.emplace_back(step.seconds, step.workspace_bytes, step.name, step.stream,
                            static_cast<uint32_t>(reads.size()),
                            static_cast<uint32_t>(writes.size()), step.extra, 0);
  impl_->uses.insert(impl_->uses.end(), reads.begin(), reads.end());
  impl_->uses.insert(impl_->uses.end(), writes.begin(), writes.end());
  if (impl_->Full()) Flush();
}

void TraceWriter::Flush() { impl_->Flush(); }
bool TraceWriter::failed() const { return impl_->failed; }

bool WriteTrace(const TraceFile& trace, const TraceWriter::Sink& sink) {
  TraceWriter writer(trace.header, sink);
  // Rows refer to strings of the file; the writer numbers them anew.
  auto number = [&](uint32_t string) {
    return string == kNoString ? kNoString : writer.String(trace.strings[string]);
  };
  for (AllocationRow a : trace.allocations) {
    a.kind = number(a.kind);
    a.extra = number(a.extra);
    writer.Allocate(a);
  }
  for (FreeRow f : trace.frees) {
    f.extra = number(f.extra);
    writer.Free(f);
  }
  for (MarkRow m : trace.marks) {
    m.text = number(m.text);
    m.extra = number(m.extra);
    writer.Mark(m);
  }
  const std::span<const TouchRow> touches(trace.touches);
  for (LaunchRow launch : trace.launches) {
    launch.name = number(launch.name);
    launch.extra = number(launch.extra);
    writer.Launch(launch, touches.subspan(launch.first_touch, launch.touches));
  }
  for (TensorRow tensor : trace.tensors) {
    tensor.id = number(tensor.id);
    tensor.kind = number(tensor.kind);
    tensor.extra = number(tensor.extra);
    writer.Tensor(tensor);
  }
  const std::span<const uint32_t> uses(trace.uses);
  for (StepRow step : trace.steps) {
    step.name = number(step.name);
    step.extra = number(step.extra);
    writer.Step(step, uses.subspan(step.first_use, step.reads),
                uses.subspan(step.first_use + step.reads, step.writes));
  }
  writer.Flush();
  return !writer.failed();
}

}  // namespace atp::protocol
