// SPDX-License-Identifier: Apache-2.0
// The raw body of trace_json.h.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <utility>
#include <vector>

#include "policy/trace_json.h"
#include "policy/trace_rows.h"

namespace atp::policy {
namespace {

constexpr std::pair<const char*, RawTrace::Access> kAccesses[] = {
    {"r", RawTrace::Access::kRead},
    {"w", RawTrace::Access::kWrite},
    {"rw", RawTrace::Access::kReadWrite},
    {"o", RawTrace::Access::kOverwrite},
};

class RawBodyReader {
 public:
  explicit RawBodyReader(RawTrace& trace) : trace_(trace) {}

  void Row(const Fields& fields) {
    if (std::exchange(first_, false)) return ReadHeader(fields, trace_);
    if (fields.Has("alloc")) return ReadAllocation(fields);
    if (fields.Has("free")) return ReadFree(fields);
    if (fields.Has("launch")) return ReadLaunch(fields);
    if (fields.Has("mark")) return ReadMark(fields);
    if (fields.Has("tensor")) {
      fields.Fail("tensor", "belongs to a tensor body; this is read as a raw body");
    }
  }
  void End() {
    if (first_) throw FieldError{"line 1: the text is empty"};
    CheckCounts(trace_.extra, {{"launches", trace_.launches.size()}});
  }

 private:
  uint64_t At(const Fields& fields) { return fields.Count("at", kMostLaunches); }

  void ReadAllocation(const Fields& fields) {
    RawTrace::Allocation allocation;
    allocation.id = fields.Count("alloc", ~uint64_t{0});
    allocation.bytes = fields.Count("bytes", kMostBytes);
    allocation.at = At(fields);
    allocation.device = static_cast<int>(fields.CountOr("device", kMostInt, 0));
    allocation.kind = fields.StringOr("kind", "");
    allocation.extra = fields.Others({"alloc", "bytes", "at", "device", "kind"});
    const uint32_t index = static_cast<uint32_t>(trace_.allocations.size());
    if (!index_.emplace(allocation.id, index).second) fields.Fail("alloc", "is used a second time");
    trace_.allocations.push_back(std::move(allocation));
  }

  RawTrace::Allocation& Find(const Fields& fields, const char* field, uint64_t id) {
    const auto it = index_.find(id);
    if (it == index_.end()) {
      fields.Fail(field, "names allocation " + std::to_string(id) + ", which no line before has");
    }
    return trace_.allocations[it->second];
  }

  void ReadFree(const Fields& fields) {
    auto& allocation = Find(fields, "free", fields.Count("free", ~uint64_t{0}));
    if (allocation.freed_at != RawTrace::kNever) fields.Fail("free", "frees a second time");
    allocation.freed_at = At(fields);
    if (allocation.freed_at < allocation.at) fields.Fail("at", "is before the allocation");
    allocation.free_extra = fields.Others({"free", "at"});
  }

  void ReadMark(const Fields& fields) {
    trace_.marks.push_back({fields.String("mark"), At(fields), fields.Others({"mark", "at"})});
  }

  void ReadLaunch(const Fields& fields) {
    if (fields.Count("launch", kMostLaunches) != trace_.launches.size()) {
      fields.Fail("launch", "should be " + std::to_string(trace_.launches.size()));
    }
    RawTrace::Launch launch;
    launch.name = fields.StringOr("name", "");
    launch.signature = ReadSignature(fields);
    launch.seconds = Seconds(fields);
    launch.stream = static_cast<int>(fields.CountOr("stream", kMostInt, 0));
    launch.device = static_cast<int>(fields.CountOr("device", kMostInt, 0));
    for (const Json& row : fields.Array("touches"))
      launch.touches.push_back(ReadTouch(fields, row));
    launch.extra =
        fields.Others({"launch", "name", "signature", "us", "stream", "device", "touches"});
    trace_.launches.push_back(std::move(launch));
  }

  uint64_t ReadSignature(const Fields& fields) {
    const std::string text = fields.StringOr("signature", "0");
    char* end = nullptr;
    const uint64_t signature = std::strtoull(text.c_str(), &end, 16);
    const bool hex = text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
    if (text.empty() || text.size() > 16 || !hex) {
      fields.Fail("signature", "is no hexadecimal number of up to 16 digits");
    }
    return signature;
  }

  RawTrace::Touch ReadTouch(const Fields& fields, const Json& row) {
    const bool shaped = row.is_array() && row.size() == 4 && row[0].is_number_unsigned() &&
                        row[1].is_number_unsigned() && row[2].is_number_unsigned() &&
                        row[3].is_string();
    if (!shaped) fields.Fail("touches", "has a row that is not [id, offset, bytes, \"access\"]");
    const uint64_t id = row[0].get<uint64_t>();
    const auto& allocation = Find(fields, "touches", id);
    RawTrace::Touch touch;
    touch.allocation = static_cast<uint32_t>(&allocation - trace_.allocations.data());
    touch.offset = row[1].get<uint64_t>();
    touch.bytes = row[2].get<uint64_t>();
    if (touch.offset > allocation.bytes || touch.bytes > allocation.bytes - touch.offset) {
      fields.Fail("touches", "reaches beyond allocation " + std::to_string(id));
    }
    const auto& access = row[3].get_ref<const std::string&>();
    for (const auto& [name, value] : kAccesses) {
      if (access == name) return touch.access = value, touch;
    }
    fields.Fail("touches", "has an access that is none of r, w, rw, o");
  }

  RawTrace& trace_;
  bool first_ = true;
  std::unordered_map<uint64_t, uint32_t> index_;
};

Json RawLaunchToJson(const RawTrace& trace, size_t k) {
  const auto& launch = trace.launches[k];
  char signature[20];
  std::snprintf(signature, sizeof signature, "%" PRIx64, launch.signature);
  Json row = {{"launch", k},
              {"name", launch.name},
              {"signature", signature},
              {"us", NumberToJson(Microseconds(launch.seconds))},
              {"stream", launch.stream},
              {"device", launch.device}};
  Json touches = Json::array();
  for (const auto& touch : launch.touches) {
    touches.push_back({trace.allocations.at(touch.allocation).id, touch.offset, touch.bytes,
                       kAccesses[static_cast<size_t>(touch.access)].first});
  }
  row["touches"] = std::move(touches);
  AddOthers(row, launch.extra);
  return row;
}

}  // namespace

bool ReadRawTrace(std::string_view text, RawTrace* trace, std::string* error) {
  return ReadWith<RawBodyReader>(text, trace, error);
}

std::string WriteRawTrace(const RawTrace& trace) {
  std::string text = Dump(HeaderToJson(trace));
  // Rows in the order of the run; of what happens between two launches, allocations come first.
  std::vector<std::pair<uint64_t, Json>> between;
  for (const auto& allocation : trace.allocations) {
    Json row = {{"alloc", allocation.id},
                {"bytes", allocation.bytes},
                {"at", allocation.at},
                {"device", allocation.device},
                {"kind", allocation.kind}};
    AddOthers(row, allocation.extra);
    between.emplace_back(allocation.at, std::move(row));
  }
  for (const auto& mark : trace.marks) {
    Json row = {{"mark", mark.text}, {"at", mark.at}};
    AddOthers(row, mark.extra);
    between.emplace_back(mark.at, std::move(row));
  }
  for (const auto& allocation : trace.allocations) {
    if (allocation.freed_at == RawTrace::kNever) continue;
    Json row = {{"free", allocation.id}, {"at", allocation.freed_at}};
    AddOthers(row, allocation.free_extra);
    between.emplace_back(allocation.freed_at, std::move(row));
  }
  std::stable_sort(between.begin(), between.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  size_t next = 0;
  for (size_t k = 0; k <= trace.launches.size(); ++k) {
    const bool end = k == trace.launches.size();
    for (; next < between.size() && (end || between[next].first <= k); ++next) {
      text += Dump(between[next].second);
    }
    if (!end) text += Dump(RawLaunchToJson(trace, k));
  }
  return text;
}

}  // namespace atp::policy
