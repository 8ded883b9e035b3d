// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/trace.h"

#include <algorithm>
#include <cinttypes>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/driver/memory.h"
#include "sim/driver/module.h"
#include "sim/driver/settings.h"
#include "sim/driver/state.h"
#include "sim/driver/stream.h"
#include "sim/machine/costs.h"

namespace atp::sim {
namespace {

constexpr uint64_t kMergeBytes = 64 << 10;

const char* KindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kDevice:
      return "native";
    case MemoryKind::kManaged:
      return "managed";
    case MemoryKind::kPooled:
      return "async";
    case MemoryKind::kMapped:
      return "vmm";
    default:
      return nullptr;  // host memory is not part of a trace
  }
}

double Microseconds(Time time) { return static_cast<double>(time) / static_cast<double>(kUs); }

std::string Hex(uint64_t value) {
  char text[20];
  std::snprintf(text, sizeof text, "%016" PRIx64, value);
  return text;
}

}  // namespace

bool Trace::Open(const std::string& path, const Settings& settings, const Machine& machine,
                 const Memory* memory) {
  file_ = std::fopen(path.c_str(), "w");
  if (!file_) return false;
  memory_ = memory;
  Costs costs = ProfileCosts(ProfileIndex(settings.machine.profile));
  std::string ignored;  // the machine has already accepted these overrides
  ApplyOverrides(settings.machine.overrides, &costs, &ignored);
  h2d_ = static_cast<double>(costs.h2d);
  d2h_ = static_cast<double>(costs.d2h);
  device_ = static_cast<double>(costs.dram);
  nlohmann::ordered_json header = {{"format", "atp-trace"},
                                   {"version", 1},
                                   {"name", settings.machine.profile},
                                   {"source", "simulated machine"},
                                   {"device_bytes", machine.Shape(0).total_bytes},
                                   {"h2d_bytes_per_s", costs.h2d},
                                   {"d2h_bytes_per_s", costs.d2h},
                                   {"duplex_h2d_bytes_per_s", costs.h2d_duplex},
                                   {"duplex_d2h_bytes_per_s", costs.d2h_duplex}};
  if (settings.machine.host_bytes) header["host_bytes"] = settings.machine.host_bytes;
  std::fprintf(file_, "%s\n", header.dump().c_str());
  return true;
}

void Trace::Allocated(const Allocation& allocation) {
  const char* kind = KindName(allocation.kind);
  if (!file_ || !kind) return;
  std::fprintf(file_,
               "{\"alloc\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"at\":%" PRIu64
               ",\"device\":%d,\"kind\":\"%s\"}\n",
               allocation.id, allocation.bytes, launches_, allocation.device, kind);
}

void Trace::Freed(const Allocation& allocation) {
  if (!file_ || !KindName(allocation.kind)) return;
  std::fprintf(file_, "{\"free\":%" PRIu64 ",\"at\":%" PRIu64 "}\n", allocation.id, launches_);
}

void Trace::Mark(const char* text) {
  if (!file_) return;
  std::fprintf(file_, "{\"mark\":%s,\"at\":%" PRIu64 "}\n", nlohmann::json(text).dump().c_str(),
               launches_);
}

void Trace::Flush() {
  if (file_) std::fflush(file_);
}

void Trace::Line(const std::string& name, const std::string& signature, double us,
                 const Stream& stream, const std::string& touches) {
  const nlohmann::json quoted = name;
  std::fprintf(file_,
               "{\"launch\":%" PRIu64
               ",\"name\":%s,\"signature\":\"%s\",\"us\":%.6g,\"stream\":%" PRIu64
               ",\"device\":%d,\"touches\":[%s]}\n",
               launches_++, quoted.dump().c_str(), signature.c_str(), us, stream.number,
               stream.context->device->index, touches.c_str());
}

std::string Trace::TouchesJson(std::vector<Touch> touches) const {
  std::sort(touches.begin(), touches.end(),
            [](const Touch& a, const Touch& b) { return a.begin < b.begin; });
  std::string json;
  const auto emit = [&](const Touch& touch) {
    const Allocation* allocation = memory_->Find(touch.begin);
    if (!allocation || !KindName(allocation->kind)) return;
    const uint64_t end = std::min(touch.end, allocation->end());
    const char* how = touch.overwritten && !touch.read ? "o"
                      : touch.read && touch.write      ? "rw"
                      : touch.write                    ? "w"
                                                       : "r";
    char text[96];
    std::snprintf(text, sizeof text, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\"%s\"]",
                  json.empty() ? "" : ",", allocation->id, touch.begin - allocation->begin,
                  end - touch.begin, how);
    json += text;
  };
  for (size_t i = 0; i < touches.size();) {
    Touch merged = touches[i++];
    while (i < touches.size() && touches[i].begin == merged.end && touches[i].read == merged.read &&
           touches[i].write == merged.write && touches[i].overwritten == merged.overwritten &&
           memory_->Find(merged.begin) == memory_->Find(touches[i].begin))
      merged.end = touches[i++].end;
    emit(merged);
  }
  return json;
}

void Trace::Launched(const Stream& stream, const KernelTask& task, const ExecResult& result,
                     Time resident) {
  if (!file_) return;
  // Pieces of 64 KiB of an allocation: how each was touched over the whole launch.
  struct Piece {
    bool read = false, write = false;
    uint64_t overwritten_pages = 0, begin = 0, end = 0;
  };
  std::map<std::pair<uint64_t, uint64_t>, Piece> pieces;
  for (const WaveTouches& wave : result.waves) {
    for (const PageTouch& touch : wave.pages) {
      const uint64_t page = touch.page << kPageBits;
      for (const Allocation* allocation : memory_->InPage(page)) {
        if (!KindName(allocation->kind)) continue;
        const uint64_t at = std::max(page, allocation->begin);
        const uint64_t index = (at - allocation->begin) / kMergeBytes;
        Piece& piece = pieces[{allocation->begin, index}];
        piece.begin = allocation->begin + index * kMergeBytes;
        piece.end = std::min(piece.begin + kMergeBytes, allocation->end());
        piece.read |= (touch.flags & PageTouch::kRead) != 0;
        piece.write |= (touch.flags & PageTouch::kWrite) != 0;
        piece.overwritten_pages += (touch.flags & PageTouch::kOverwritten) != 0;
      }
    }
  }
  std::vector<Touch> touches;
  for (const auto& [key, piece] : pieces) {
    const uint64_t pages = (piece.end - piece.begin + (1u << kPageBits) - 1) >> kPageBits;
    touches.push_back(
        {piece.begin, piece.end, piece.read, piece.write, piece.overwritten_pages >= pages});
  }
  const KernelInfo& info = *task.function->info;
  uint64_t signature = task.function->signature;
  for (int i = 0; i < 3; ++i) signature = (signature * 1099511628211u) ^ task.config.grid[i];
  for (int i = 0; i < 3; ++i) signature = (signature * 1099511628211u) ^ task.config.block[i];
  Line(info.name, Hex(signature), Microseconds(resident), stream, TouchesJson(std::move(touches)));
}

std::string Trace::ProgramRange(uint64_t address, uint64_t bytes, const char* how) const {
  const Allocation* allocation = memory_->Find(address);
  if (!allocation || !KindName(allocation->kind)) return "";
  char text[96];
  std::snprintf(text, sizeof text, "[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\"%s\"]", allocation->id,
                address - allocation->begin, std::min(bytes, allocation->end() - address), how);
  return text;
}

void Trace::Copied(const Stream& stream, const CopyTask& task, CopyKind kind) {
  if (!file_) return;
  const char* name = kind == CopyKind::kHostToDevice   ? "memcpy_h2d"
                     : kind == CopyKind::kDeviceToHost ? "memcpy_d2h"
                                                       : "memcpy_d2d";
  const double rate = kind == CopyKind::kHostToDevice   ? h2d_
                      : kind == CopyKind::kDeviceToHost ? d2h_
                                                        : device_ / 2;
  const bool plain = task.height == 1 && task.depth == 1;
  const uint64_t source =
      (task.depth - 1) * task.source_slice + (task.height - 1) * task.source_pitch + task.width;
  const uint64_t target = (task.depth - 1) * task.destination_slice +
                          (task.height - 1) * task.destination_pitch + task.width;
  std::string touches = ProgramRange(task.source, source, "r");
  const std::string written = ProgramRange(task.destination, target, plain ? "o" : "w");
  if (!touches.empty() && !written.empty()) touches += ",";
  Line(name, Hex(std::hash<std::string>{}(name)), static_cast<double>(task.bytes()) / rate * 1e6,
       stream, touches + written);
}

void Trace::Set(const Stream& stream, const SetTask& task) {
  if (!file_) return;
  const uint64_t row = task.width * task.element_bytes;
  const bool plain = task.height == 1 || task.pitch == row;
  Line("memset", Hex(std::hash<std::string>{}("memset")),
       static_cast<double>(row * task.height) / device_ * 1e6, stream,
       ProgramRange(task.destination, (task.height - 1) * task.pitch + row, plain ? "o" : "w"));
}

}  // namespace atp::sim
