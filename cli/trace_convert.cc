// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_convert.h"

#include <string>
#include <unordered_map>

namespace atp::cli {
namespace {

using policy::RawTrace;

class Strings {
 public:
  explicit Strings(protocol::TraceFile* file) : file_(*file) {}
  uint32_t Number(const std::string& text) {
    const auto [at, fresh] = numbers_.emplace(text, static_cast<uint32_t>(file_.strings.size()));
    if (fresh) file_.strings.push_back(text);
    return at->second;
  }
  uint32_t Extra(const std::string& text) {
    return text.empty() ? protocol::kNoString : Number(text);
  }

 private:
  protocol::TraceFile& file_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

std::string Extra(const protocol::TraceFile& file, uint32_t number) {
  return number == protocol::kNoString ? std::string() : file.strings[number];
}

template <typename AnyTrace>
protocol::TraceHeader HeaderOf(const AnyTrace& trace) {
  return {trace.name,     trace.source,   trace.device_bytes,    trace.host_bytes,
          trace.link.h2d, trace.link.d2h, trace.link.duplex_h2d, trace.link.duplex_d2h,
          trace.extra};
}

template <typename AnyTrace>
void SetHeader(const protocol::TraceHeader& header, AnyTrace* trace) {
  trace->name = header.name;
  trace->source = header.source;
  trace->device_bytes = header.device_bytes;
  trace->host_bytes = header.host_bytes;
  trace->link = {header.h2d_bytes_per_s, header.d2h_bytes_per_s, header.duplex_h2d_bytes_per_s,
                 header.duplex_d2h_bytes_per_s};
  trace->extra = header.other;
}

uint8_t AccessBits(RawTrace::Access access) {
  switch (access) {
    case RawTrace::Access::kRead:
      return protocol::kReads;
    case RawTrace::Access::kWrite:
      return protocol::kWrites;
    case RawTrace::Access::kReadWrite:
      return protocol::kReads | protocol::kWrites;
    case RawTrace::Access::kOverwrite:
      return protocol::kOverwrites;
  }
  return 0;
}

RawTrace::Access AccessOf(uint8_t bits) {
  if ((bits & protocol::kOverwrites) != 0) return RawTrace::Access::kOverwrite;
  if (bits == protocol::kReads) return RawTrace::Access::kRead;
  if (bits == protocol::kWrites) return RawTrace::Access::kWrite;
  return RawTrace::Access::kReadWrite;
}

}  // namespace

protocol::TraceFile ToFile(const policy::Trace& trace) {
  protocol::TraceFile file;
  file.header = HeaderOf(trace);
  Strings strings(&file);
  for (const policy::Tensor& t : trace.tensors) {
    file.tensors.push_back(
        {t.bytes, strings.Number(t.id), strings.Number(t.kind), t.global, strings.Extra(t.extra)});
  }
  for (const policy::Launch& l : trace.launches) {
    file.steps.push_back({l.seconds, l.workspace, strings.Number(l.name), l.stream,
                          file.uses.size(), static_cast<uint32_t>(l.reads.size()),
                          static_cast<uint32_t>(l.writes.size()), strings.Extra(l.extra)});
    file.uses.insert(file.uses.end(), l.reads.begin(), l.reads.end());
    file.uses.insert(file.uses.end(), l.writes.begin(), l.writes.end());
  }
  return file;
}

protocol::TraceFile ToFile(const RawTrace& trace) {
  protocol::TraceFile file;
  file.header = HeaderOf(trace);
  Strings strings(&file);
  for (const RawTrace::Allocation& a : trace.allocations) {
    file.allocations.push_back(
        {a.id, a.bytes, a.at, a.device, strings.Number(a.kind), strings.Extra(a.extra)});
    if (a.freed_at == RawTrace::kNever) continue;
    file.frees.push_back({a.id, a.freed_at, strings.Extra(a.free_extra)});
  }
  for (const RawTrace::Launch& l : trace.launches) {
    file.launches.push_back({l.signature, l.seconds, strings.Number(l.name), l.stream, l.device,
                             file.touches.size(), static_cast<uint32_t>(l.touches.size()),
                             strings.Extra(l.extra)});
    for (const RawTrace::Touch& t : l.touches) {
      file.touches.push_back(
          {trace.allocations[t.allocation].id, t.offset, t.bytes, AccessBits(t.access)});
    }
  }
  for (const RawTrace::Mark& m : trace.marks) {
    file.marks.push_back({m.at, strings.Number(m.text), strings.Extra(m.extra)});
  }
  return file;
}

policy::Trace TensorTraceOf(const protocol::TraceFile& file) {
  policy::Trace trace;
  SetHeader(file.header, &trace);
  for (const protocol::TensorRow& row : file.tensors) {
    policy::Tensor tensor;
    tensor.id = file.strings[row.id];
    tensor.bytes = row.bytes;
    tensor.kind = file.strings[row.kind];
    tensor.global = row.global;
    tensor.extra = Extra(file, row.extra);
    trace.tensors.push_back(std::move(tensor));
  }
  for (const protocol::StepRow& row : file.steps) {
    policy::Launch launch;
    launch.name = file.strings[row.name];
    launch.seconds = row.seconds;
    launch.workspace = row.workspace_bytes;
    launch.stream = row.stream;
    launch.extra = Extra(file, row.extra);
    const auto reads = file.uses.begin() + static_cast<long>(row.first_use);
    launch.reads.assign(reads, reads + row.reads);
    launch.writes.assign(reads + row.reads, reads + row.reads + row.writes);
    trace.launches.push_back(std::move(launch));
  }
  return trace;
}

RawTrace RawTraceOf(const protocol::TraceFile& file) {
  RawTrace trace;
  SetHeader(file.header, &trace);
  std::unordered_map<uint64_t, uint32_t> index;
  for (const protocol::AllocationRow& row : file.allocations) {
    index[row.id] = static_cast<uint32_t>(trace.allocations.size());
    RawTrace::Allocation allocation;
    allocation.id = row.id;
    allocation.bytes = row.bytes;
    allocation.at = row.at;
    allocation.device = row.device;
    allocation.kind = file.strings[row.kind];
    allocation.extra = Extra(file, row.extra);
    trace.allocations.push_back(std::move(allocation));
  }
  for (const protocol::FreeRow& row : file.frees) {
    RawTrace::Allocation& allocation = trace.allocations[index.at(row.id)];
    allocation.freed_at = row.at;
    allocation.free_extra = Extra(file, row.extra);
  }
  for (const protocol::LaunchRow& row : file.launches) {
    RawTrace::Launch launch;
    launch.name = file.strings[row.name];
    launch.signature = row.signature;
    launch.seconds = row.seconds;
    launch.stream = row.stream;
    launch.device = row.device;
    launch.extra = Extra(file, row.extra);
    for (uint64_t i = row.first_touch; i < row.first_touch + row.touches; ++i) {
      const protocol::TouchRow& t = file.touches[i];
      launch.touches.push_back({index.at(t.allocation), t.offset, t.bytes, AccessOf(t.access)});
    }
    trace.launches.push_back(std::move(launch));
  }
  for (const protocol::MarkRow& row : file.marks) {
    trace.marks.push_back({file.strings[row.text], row.at, Extra(file, row.extra)});
  }
  return trace;
}

}  // namespace atp::cli
