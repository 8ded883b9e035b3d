// SPDX-License-Identifier: Apache-2.0
#include "policy/trace_json.h"

#include <unordered_map>
#include <utility>

#include "policy/trace_rows.h"

namespace atp::policy {
namespace {

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

}  // namespace atp::policy
