// SPDX-License-Identifier: Apache-2.0
#include "policy/trace_json.h"

#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "policy/json_fields.h"

namespace atp::policy {
namespace {

using Json = Fields::Json;

constexpr uint64_t kMostLaunches = uint64_t{1} << 32;
constexpr uint64_t kMostInt = (uint64_t{1} << 31) - 1;

double Seconds(const Fields& fields) { return fields.Number("us") * 1e-6; }

// The shortest microseconds that read back as the same seconds.
double Microseconds(double seconds) {
  char text[40];
  for (int digits = 1; digits < 18; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, seconds * 1e6);
    const double us = std::strtod(text, nullptr);
    if (us * 1e-6 == seconds) return us;
  }
  return seconds * 1e6;
}

// A number without a fraction is written without one.
Json NumberToJson(double value) {
  if (value == std::floor(value) && std::abs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

template <typename AnyTrace>
void ReadHeader(const Fields& fields, AnyTrace& trace) {
  if (fields.String("format") != "atp-trace") fields.Fail("format", "is not \"atp-trace\"");
  if (fields.Count("version", kMostInt) != 1) fields.Fail("version", "is not 1");
  trace.name = fields.StringOr("name", "");
  trace.source = fields.StringOr("source", "");
  trace.device_bytes = fields.Count("device_bytes", kMostBytes);
  trace.host_bytes = fields.CountOr("host_bytes", kMostBytes, 0);
  trace.link.h2d = fields.Number("h2d_bytes_per_s");
  trace.link.d2h = fields.Number("d2h_bytes_per_s");
  trace.link.duplex_h2d = fields.NumberOr("duplex_h2d_bytes_per_s", 0);
  trace.link.duplex_d2h = fields.NumberOr("duplex_d2h_bytes_per_s", 0);
  if (!(trace.link.h2d > 0)) fields.Fail("h2d_bytes_per_s", "is not positive");
  if (!(trace.link.d2h > 0)) fields.Fail("d2h_bytes_per_s", "is not positive");
  trace.extra = fields.Others({"format", "version", "name", "source", "device_bytes", "host_bytes",
                               "h2d_bytes_per_s", "d2h_bytes_per_s", "duplex_h2d_bytes_per_s",
                               "duplex_d2h_bytes_per_s"});
}

template <typename AnyTrace>
Json HeaderToJson(const AnyTrace& trace) {
  Json header = {{"format", "atp-trace"},
                 {"version", 1},
                 {"name", trace.name},
                 {"source", trace.source},
                 {"device_bytes", trace.device_bytes}};
  header["h2d_bytes_per_s"] = NumberToJson(trace.link.h2d);
  header["d2h_bytes_per_s"] = NumberToJson(trace.link.d2h);
  if (trace.link.duplex_h2d > 0) {
    header["duplex_h2d_bytes_per_s"] = NumberToJson(trace.link.duplex_h2d);
  }
  if (trace.link.duplex_d2h > 0) {
    header["duplex_d2h_bytes_per_s"] = NumberToJson(trace.link.duplex_d2h);
  }
  if (trace.host_bytes > 0) header["host_bytes"] = trace.host_bytes;
  AddOthers(header, trace.extra);
  return header;
}

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Where the header says how many rows there are, a file that ends early is noticed.
void CheckCount(const Json& header, const char* key, size_t found) {
  const auto it = header.find(key);
  if (it == header.end() || !it->is_number_unsigned() || it->get<uint64_t>() == found) return;
  throw FieldError{"line 1: field \"" + std::string(key) + "\" says " + it->dump() +
                   ", but there are " + std::to_string(found) + " (is the file truncated?)"};
}

void CheckCounts(const std::string& extra,
                 std::initializer_list<std::pair<const char*, size_t>> found) {
  if (extra.empty()) return;
  const Json header = Json::parse(extra, nullptr, false);
  for (const auto& [key, count] : found) CheckCount(header, key, count);
}

class TensorBodyReader {
 public:
  explicit TensorBodyReader(Trace& trace) : trace_(trace) {}

  void Row(const Fields& fields) {
    if (std::exchange(first_, false)) return ReadHeader(fields, trace_);
    if (fields.Has("tensor")) return ReadTensor(fields);
    if (fields.Has("launch")) return ReadLaunch(fields);
    for (const char* raw : {"alloc", "free", "mark"}) {
      if (fields.Has(raw)) fields.Fail(raw, "belongs to a raw body; this is read as a tensor body");
    }
  }
  void End() {
    if (first_) throw FieldError{"line 1: the text is empty"};
    CheckCounts(trace_.extra, {{"tensors", trace_.tensors.size()},
                               {"kernels", trace_.launches.size()},
                               {"launches", trace_.launches.size()}});
  }

 private:
  void ReadTensor(const Fields& fields) {
    Tensor tensor;
    tensor.id = fields.Id("tensor");
    tensor.bytes = fields.Count("bytes", kMostBytes);
    tensor.kind = fields.StringOr("kind", "other");
    tensor.global = fields.Bool("global");
    tensor.extra = fields.Others({"tensor", "bytes", "kind", "global"});
    if ((total_ += tensor.bytes) > kMostBytes) fields.Fail("bytes", "adds up to more than 2^60");
    const uint32_t index = static_cast<uint32_t>(trace_.tensors.size());
    if (!index_.emplace(tensor.id, index).second) {
      fields.Fail("tensor", "names " + tensor.id + " a second time");
    }
    trace_.tensors.push_back(std::move(tensor));
  }

  void ReadLaunch(const Fields& fields) {
    if (fields.Count("launch", kMostLaunches) != trace_.launches.size()) {
      fields.Fail("launch", "should be " + std::to_string(trace_.launches.size()));
    }
    Launch launch;
    launch.name = fields.StringOr("name", "");
    launch.seconds = Seconds(fields);
    ReadIds(fields, "reads", launch.reads);
    ReadIds(fields, "writes", launch.writes);
    launch.workspace = fields.CountOr("workspace_bytes", kMostBytes, 0);
    launch.stream = static_cast<int>(fields.CountOr("stream", kMostInt, 0));
    launch.extra =
        fields.Others({"launch", "name", "us", "reads", "writes", "workspace_bytes", "stream"});
    trace_.launches.push_back(std::move(launch));
  }

  void ReadIds(const Fields& fields, const char* field, std::vector<uint32_t>& list) {
    for (const Json& value : fields.Array(field)) {
      const std::string id = fields.IdOf(field, value);
      const auto it = index_.find(id);
      if (it == index_.end())
        fields.Fail(field, "names tensor " + id + ", which no line before has");
      list.push_back(it->second);
    }
  }

  Trace& trace_;
  bool first_ = true;
  uint64_t total_ = 0;
  std::unordered_map<std::string, uint32_t> index_;
};

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

template <typename Reader, typename AnyTrace>
bool ReadWith(std::string_view text, AnyTrace* trace, std::string* error) {
  *trace = {};
  Reader reader(*trace);
  try {
    EachLine(text, [&](const Fields& fields) { reader.Row(fields); });
    reader.End();
    return true;
  } catch (const FieldError& e) {
    *error = e.text;
  } catch (const std::exception& e) {  // out of memory, or a surprise in the JSON library
    *error = e.what();
  }
  *trace = {};
  return false;
}

}  // namespace

TraceBody DetectTraceBody(std::string_view text) {
  TraceBody body = TraceBody::kNone;
  size_t rows = 0;
  try {
    EachLine(text, [&](const Fields& fields) {
      if (rows++ == 0) return;
      const bool raw = fields.Has("alloc") || fields.Has("mark") || fields.Has("touches");
      const bool tensor = fields.Has("tensor") || fields.Has("reads");
      body = raw ? TraceBody::kRaw : tensor ? TraceBody::kTensor : TraceBody::kNone;
      if (body != TraceBody::kNone) throw FieldError{};  // known: read no further
    });
  } catch (const FieldError&) {
  }
  return body;
}

bool ReadTrace(std::string_view text, Trace* trace, std::string* error) {
  return ReadWith<TensorBodyReader>(text, trace, error);
}

bool ReadRawTrace(std::string_view text, RawTrace* trace, std::string* error) {
  return ReadWith<RawBodyReader>(text, trace, error);
}

std::string WriteTrace(const Trace& trace) {
  std::string text = Dump(HeaderToJson(trace));
  for (const Tensor& tensor : trace.tensors) {
    Json row = {{"tensor", IdToJson(tensor.id)},
                {"bytes", tensor.bytes},
                {"kind", tensor.kind},
                {"global", tensor.global}};
    AddOthers(row, tensor.extra);
    text += Dump(row);
  }
  for (size_t k = 0; k < trace.launches.size(); ++k) {
    const Launch& launch = trace.launches[k];
    Json row = {
        {"launch", k}, {"name", launch.name}, {"us", NumberToJson(Microseconds(launch.seconds))}};
    for (auto [key, list] : {std::pair{"reads", &launch.reads}, {"writes", &launch.writes}}) {
      Json ids = Json::array();
      for (uint32_t t : *list) ids.push_back(IdToJson(trace.tensors.at(t).id));
      row[key] = std::move(ids);
    }
    row["workspace_bytes"] = launch.workspace;
    if (launch.stream != 0) row["stream"] = launch.stream;
    AddOthers(row, launch.extra);
    text += Dump(row);
  }
  return text;
}

namespace {

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
