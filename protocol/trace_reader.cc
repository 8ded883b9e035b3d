// SPDX-License-Identifier: Apache-2.0
#include "protocol/trace_reader.h"

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "trace_generated.h"

namespace atp::protocol {
namespace {

constexpr size_t kPrefix = sizeof(flatbuffers::uoffset_t);

bool GoodTime(double seconds) { return std::isfinite(seconds) && seconds >= 0; }
bool GoodRate(double rate) { return std::isfinite(rate) && rate >= 0; }

// The verifier checks that rows lie inside the chunk, not that they lie where 64-bit numbers may.
template <typename Rows>
bool Misplaced(const Rows* rows) {
  return rows != nullptr && rows->size() > 0 && reinterpret_cast<uintptr_t>(rows->Data()) % 8 != 0;
}

bool RowsMisplaced(const wire::Chunk& chunk) {
  return Misplaced(chunk.allocations()) || Misplaced(chunk.frees()) ||
         Misplaced(chunk.launches()) || Misplaced(chunk.touches()) || Misplaced(chunk.marks()) ||
         Misplaced(chunk.tensors()) || Misplaced(chunk.steps());
}

// Appends chunks to a TraceFile; the first thing wrong ends it with an error.
class Assembler {
 public:
  explicit Assembler(TraceFile* trace) : trace_(*trace) {}

  // Empty = fine.
  std::string Add(const wire::Chunk& chunk, bool first) {
    if (chunk.version() != kTraceVersion) {
      return "version " + std::to_string(chunk.version()) + " of the format; this program reads " +
             std::to_string(kTraceVersion);
    }
    if (RowsMisplaced(chunk)) return "rows that are not aligned";
    if (first != (chunk.header() != nullptr)) {
      return first ? "the first chunk has no header" : "a header in the middle";
    }
    if (first && !AddHeader(*chunk.header())) return "a rate in the header is not a number";
    if (chunk.strings() != nullptr) {
      for (const auto* text : *chunk.strings()) trace_.strings.push_back(text->str());
    }
    for (auto step : {&Assembler::AddAllocations, &Assembler::AddFrees, &Assembler::AddMarks,
                      &Assembler::AddLaunches, &Assembler::AddTensors, &Assembler::AddSteps}) {
      if (std::string error = (this->*step)(chunk); !error.empty()) return error;
    }
    return "";
  }

 private:
  bool AddHeader(const wire::Header& header) {
    auto text = [](const flatbuffers::String* s) {
      return s != nullptr ? s->str() : std::string();
    };
    trace_.header = {text(header.name()),
                     text(header.source()),
                     header.device_bytes(),
                     header.host_bytes(),
                     header.h2d_bytes_per_s(),
                     header.d2h_bytes_per_s(),
                     header.duplex_h2d_bytes_per_s(),
                     header.duplex_d2h_bytes_per_s(),
                     text(header.other())};
    const TraceHeader& h = trace_.header;
    return GoodRate(h.h2d_bytes_per_s) && GoodRate(h.d2h_bytes_per_s) &&
           GoodRate(h.duplex_h2d_bytes_per_s) && GoodRate(h.duplex_d2h_bytes_per_s);
  }

  bool HasString(uint32_t number) const { return number < trace_.strings.size(); }
  bool HasExtra(uint32_t number) const { return number == kNoString || HasString(number); }

  std::string AddAllocations(const wire::Chunk& chunk) {
    if (chunk.allocations() == nullptr) return "";
    for (const auto* row : *chunk.allocations()) {
      if (!HasString(row->kind()) || !HasExtra(row->extra()))
        return "an allocation names a string that is not there";
      if (!sizes_.emplace(row->id(), row->bytes()).second) {
        return "allocation " + std::to_string(row->id()) + " appears twice";
      }
      trace_.allocations.push_back(
          {row->id(), row->bytes(), row->at(), row->device(), row->kind(), row->extra()});
    }
    return "";
  }

  std::string AddFrees(const wire::Chunk& chunk) {
    if (chunk.frees() == nullptr) return "";
    for (const auto* row : *chunk.frees()) {
      if (sizes_.count(row->id()) == 0) {
        return "free of allocation " + std::to_string(row->id()) + ", which is not there";
      }
      if (!HasExtra(row->extra())) return "a free names a string that is not there";
      trace_.frees.push_back({row->id(), row->at(), row->extra()});
    }
    return "";
  }

  std::string AddMarks(const wire::Chunk& chunk) {
    if (chunk.marks() == nullptr) return "";
    for (const auto* row : *chunk.marks()) {
      if (!HasString(row->text()) || !HasExtra(row->extra()))
        return "a mark names a string that is not there";
      trace_.marks.push_back({row->at(), row->text(), row->extra()});
    }
    return "";
  }

  std::string AddLaunches(const wire::Chunk& chunk) {
    const size_t touches = chunk.touches() != nullptr ? chunk.touches()->size() : 0;
    size_t taken = 0;
    if (chunk.launches() != nullptr) {
      for (const auto* row : *chunk.launches()) {
        if (!HasString(row->name()) || !HasExtra(row->extra()))
          return "a launch names a string that is not there";
        if (!GoodTime(row->seconds())) return "the time of a launch is not a number";
        if (row->touches() > touches - taken) return "a launch has more touches than the chunk";
        trace_.launches.push_back({row->signature(), row->seconds(), row->name(), row->stream(),
                                   row->device(), trace_.touches.size(), row->touches(),
                                   row->extra()});
        for (uint32_t i = 0; i < row->touches(); ++i) {
          const auto* touch = chunk.touches()->Get(static_cast<uint32_t>(taken++));
          if (std::string error = AddTouch(*touch); !error.empty()) return error;
        }
      }
    }
    return taken == touches ? "" : "the chunk has touches that belong to no launch";
  }

  std::string AddTouch(const wire::Touch& touch) {
    const auto size = sizes_.find(touch.allocation());
    if (size == sizes_.end()) {
      return "a touch of allocation " + std::to_string(touch.allocation()) + ", which is not there";
    }
    if (touch.offset() > size->second || touch.bytes() > size->second - touch.offset()) {
      return "a touch reaches beyond allocation " + std::to_string(touch.allocation());
    }
    if (touch.access() == 0 || touch.access() > 7) return "a touch neither reads nor writes";
    trace_.touches.push_back(
        {touch.allocation(), touch.offset(), touch.bytes(), static_cast<uint8_t>(touch.access())});
    return "";
  }

  std::string AddTensors(const wire::Chunk& chunk) {
    if (chunk.tensors() == nullptr) return "";
    for (const auto* row : *chunk.tensors()) {
      if (!HasString(row->id()) || !HasString(row->kind()) || !HasExtra(row->extra())) {
        return "a tensor names a string that is not there";
      }
      trace_.tensors.push_back(
          {row->bytes(), row->id(), row->kind(), row->global() != 0, row->extra()});
    }
    return "";
  }

  std::string AddSteps(const wire::Chunk& chunk) {
    const size_t uses = chunk.uses() != nullptr ? chunk.uses()->size() : 0;
    size_t taken = 0;
    if (chunk.steps() != nullptr) {
      for (const auto* row : *chunk.steps()) {
        if (!HasString(row->name()) || !HasExtra(row->extra()))
          return "a launch names a string that is not there";
        if (!GoodTime(row->seconds())) return "the time of a launch is not a number";
        const uint64_t count = uint64_t{row->reads()} + row->writes();
        if (count > uses - taken) return "a launch uses more tensors than the chunk names";
        trace_.steps.push_back({row->seconds(), row->workspace_bytes(), row->name(), row->stream(),
                                trace_.uses.size(), row->reads(), row->writes(), row->extra()});
        for (uint64_t i = 0; i < count; ++i) {
          const uint32_t tensor = chunk.uses()->Get(static_cast<uint32_t>(taken++));
          if (tensor >= trace_.tensors.size()) return "a launch uses a tensor that is not there";
          trace_.uses.push_back(tensor);
        }
      }
    }
    return taken == uses ? "" : "the chunk has uses that belong to no launch";
  }

  TraceFile& trace_;
  std::unordered_map<uint64_t, uint64_t> sizes_;  // of all allocations, by id
};

// Structs hold 64-bit numbers, and a chunk may start at any byte of a file.
std::vector<uint64_t> Aligned(std::span<const uint8_t> bytes) {
  std::vector<uint64_t> words((bytes.size() + 7) / 8);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

}  // namespace

bool LooksLikeTrace(std::span<const uint8_t> bytes) {
  return bytes.size() >= kPrefix + 8 &&
         flatbuffers::BufferHasIdentifier(bytes.data(), wire::ChunkIdentifier(), true);
}

bool ReadTrace(std::span<const uint8_t> bytes, const ReadOptions& options, TraceFile* trace,
               std::string* error) {
  *trace = TraceFile();
  Assembler assembler(trace);
  size_t at = 0, number = 0;
  auto fail = [&](const std::string& what) {
    *error = what + " (chunk " + std::to_string(number) + " at byte " + std::to_string(at) + ")";
    return false;
  };
  if (bytes.empty()) return fail("the file is empty");
  for (; at < bytes.size(); ++number) {
    const std::span<const uint8_t> rest = bytes.subspan(at);
    const size_t size = rest.size() < kPrefix ? 0 : flatbuffers::GetPrefixedSize(rest.data());
    if (rest.size() < kPrefix || size > rest.size() - kPrefix) {
      if (!options.accept_truncated || number == 0) return fail("the file ends inside a chunk");
      trace->truncated = true;
      break;
    }
    const std::span<const uint8_t> chunk = rest.first(kPrefix + size);
    if (!LooksLikeTrace(chunk)) return fail("not a chunk of a trace");
    const std::vector<uint64_t> words = Aligned(chunk);
    const auto* data = reinterpret_cast<const uint8_t*>(words.data());
    flatbuffers::Verifier verifier(data, chunk.size());
    if (!wire::VerifySizePrefixedChunkBuffer(verifier)) return fail("a damaged chunk");
    const std::string wrong = assembler.Add(*wire::GetSizePrefixedChunk(data), number == 0);
    if (!wrong.empty()) return fail(wrong);
    at += chunk.size();
  }
  return true;
}

}  // namespace atp::protocol
