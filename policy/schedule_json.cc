// SPDX-License-Identifier: Apache-2.0
// The schedule form of trace_json.h: one JSON object.
#include <cmath>
#include <unordered_map>
#include <utility>

#include "policy/actions.h"
#include "policy/json_fields.h"
#include "policy/trace_json.h"

namespace atp::policy {
namespace {

using Json = Fields::Json;

constexpr std::pair<const char*, Schedule::Kind> kKinds[] = {
    {"d2h", Schedule::Kind::kD2h},
    {"h2d", Schedule::Kind::kH2d},
    {"discard", Schedule::Kind::kDiscard},
};

class Reader {
 public:
  Reader(const Trace& trace, const Fields& fields) : fields_(fields) {
    for (uint32_t t = 0; t < trace.tensors.size(); ++t) index_.emplace(trace.tensors[t].id, t);
  }

  Schedule Read() {
    Schedule schedule;
    schedule.period_seconds = fields_.Number("period_s");
    for (const Json& row : fields_.Array("launches")) {
      Shape("launches", row, 3);
      schedule.launches.push_back({static_cast<uint32_t>(Count("launches", row[0], ~0u)),
                                   Time("launches", row[1]), Time("launches", row[2])});
    }
    for (const Json& row : fields_.Array("moves")) {
      Shape("moves", row, 6);
      schedule.moves.push_back({TensorOf("moves", row[0]), Count("moves", row[1], kMostBytes),
                                Count("moves", row[2], kMostBytes), Kind(row[3]),
                                Time("moves", row[4]), Time("moves", row[5])});
    }
    for (const Json& row : fields_.Array("initial")) {
      Shape("initial", row, 3);
      schedule.initial.push_back({TensorOf("initial", row[0]), Count("initial", row[1], kMostBytes),
                                  Count("initial", row[2], kMostBytes)});
    }
    return schedule;
  }

 private:
  void Shape(const char* field, const Json& row, size_t size) {
    if (!row.is_array() || row.size() != size) {
      fields_.Fail(field, "has a row that is no array of " + std::to_string(size));
    }
  }
  uint64_t Count(const char* field, const Json& value, uint64_t most) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > most) {
      fields_.Fail(field, "has a value that is no size: " + value.dump());
    }
    return value.get<uint64_t>();
  }
  double Time(const char* field, const Json& value) {
    const bool valid =
        value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
    if (!valid) fields_.Fail(field, "has a value that is no time: " + value.dump());
    return value.get<double>();
  }
  uint32_t TensorOf(const char* field, const Json& value) {
    const auto it = index_.find(fields_.IdOf(field, value));
    if (it == index_.end())
      fields_.Fail(field, "names a tensor the trace does not have: " + value.dump());
    return it->second;
  }
  Schedule::Kind Kind(const Json& value) {
    for (const auto& [name, kind] : kKinds) {
      if (value == name) return kind;
    }
    fields_.Fail("moves", "has a kind that is none of d2h, h2d, discard: " + value.dump());
  }

  const Fields& fields_;
  std::unordered_map<std::string, uint32_t> index_;
};

}  // namespace

bool ReadSchedule(std::string_view text, const Trace& trace, Schedule* schedule,
                  std::string* error) {
  *schedule = {};
  try {
    const Json object = Json::parse(text);
    if (!object.is_object()) throw FieldError{"line 1: no JSON object"};
    const Fields fields(1, object);
    *schedule = Reader(trace, fields).Read();
    return true;
  } catch (const FieldError& e) {
    *error = e.text;
  } catch (const std::exception& e) {
    *error = e.what();
  }
  return false;
}

std::string WriteActions(const Trace& trace, const Plan& plan) {
  constexpr const char* kNames[] = {"advise_read_mostly", "advise_host", "evict",
                                    "prefetch",           "touch",       "discard"};
  Json actions = Json::array();
  for (const Action& a : ToActions(trace, plan)) {
    const bool after = a.kind == Action::Kind::kEvict || a.kind == Action::Kind::kDiscard;
    Json json = {{"do", kNames[static_cast<size_t>(a.kind)]},
                 {"tensor", IdToJson(trace.tensors.at(a.tensor).id)},
                 {"offset", a.offset},
                 {"bytes", a.bytes},
                 {after ? "after_launch" : "before_launch", a.launch},
                 {"start_s", a.start},
                 {"deadline_s", a.deadline}};
    if (a.kind == Action::Kind::kEvict) json["copies"] = a.copies;
    actions.push_back(std::move(json));
  }
  const Json object = {{"period_s", plan.period_seconds}, {"actions", std::move(actions)}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string WriteSchedule(const Trace& trace, const Schedule& schedule) {
  auto id = [&](uint32_t t) { return IdToJson(trace.tensors.at(t).id); };
  Json launches = Json::array(), moves = Json::array(), initial = Json::array();
  for (const auto& l : schedule.launches) launches.push_back({l.launch, l.start, l.end});
  for (const auto& m : schedule.moves) {
    moves.push_back({id(m.tensor), m.offset, m.bytes, kKinds[static_cast<size_t>(m.kind)].first,
                     m.start, m.end});
  }
  for (const auto& p : schedule.initial) initial.push_back({id(p.tensor), p.offset, p.bytes});
  const Json object = {{"period_s", schedule.period_seconds},
                       {"launches", std::move(launches)},
                       {"moves", std::move(moves)},
                       {"initial", std::move(initial)}};
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace atp::policy
