// SPDX-License-Identifier: Apache-2.0
#include "policy/json_fields.h"

#include <algorithm>
#include <cmath>

namespace atp::policy {

void Fields::Fail(std::string_view field, std::string_view what) const {
  throw FieldError{"line " + std::to_string(line_) + ": field \"" + std::string(field) + "\" " +
                   std::string(what)};
}

const Fields::Json& Fields::Get(const char* field) const {
  const auto it = object_.find(field);
  if (it == object_.end()) Fail(field, "is missing");
  return *it;
}

std::string Fields::String(const char* field) const {
  const Json& value = Get(field);
  if (!value.is_string()) Fail(field, "is no string");
  return value.get<std::string>();
}

std::string Fields::StringOr(const char* field, std::string otherwise) const {
  return Has(field) ? String(field) : std::move(otherwise);
}

uint64_t Fields::Count(const char* field, uint64_t most) const {
  const Json& value = Get(field);
  if (!value.is_number_integer()) Fail(field, "is no integer");
  if (!value.is_number_unsigned()) Fail(field, "is negative");
  const uint64_t count = value.get<uint64_t>();
  if (count > most) Fail(field, "is larger than " + std::to_string(most));
  return count;
}

uint64_t Fields::CountOr(const char* field, uint64_t most, uint64_t otherwise) const {
  return Has(field) ? Count(field, most) : otherwise;
}

double Fields::Number(const char* field) const {
  const Json& value = Get(field);
  if (!value.is_number()) Fail(field, "is no number");
  const double number = value.get<double>();
  if (!std::isfinite(number)) Fail(field, "is not finite");
  if (number < 0) Fail(field, "is negative");
  return number;
}

double Fields::NumberOr(const char* field, double otherwise) const {
  return Has(field) ? Number(field) : otherwise;
}

bool Fields::Bool(const char* field) const {
  const Json& value = Get(field);
  if (!value.is_boolean()) Fail(field, "is neither true nor false");
  return value.get<bool>();
}

const Fields::Json& Fields::Array(const char* field) const {
  const Json& value = Get(field);
  if (!value.is_array()) Fail(field, "is no array");
  return value;
}

std::string Fields::Id(const char* field) const { return IdOf(field, Get(field)); }

std::string Fields::IdOf(std::string_view field, const Json& value) const {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_unsigned()) return std::to_string(value.get<uint64_t>());
  Fail(field, "holds an id that is neither a string nor a whole number");
}

std::string Fields::Others(std::initializer_list<const char*> known) const {
  Json others = Json::object();
  for (const auto& [key, value] : object_.items()) {
    const bool is_known =
        std::any_of(known.begin(), known.end(), [&](const char* name) { return key == name; });
    if (!is_known) others[key] = value;
  }
  return others.empty() ? std::string() : others.dump();
}

Fields::Json IdToJson(const std::string& id) {
  const bool digits =
      !id.empty() && id.size() < 19 &&
      std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits && (id.size() == 1 || id[0] != '0')) return std::stoull(id);
  return id;
}

void AddOthers(Fields::Json& object, const std::string& extra) {
  if (extra.empty()) return;
  const Fields::Json others = Fields::Json::parse(extra, nullptr, false);
  if (!others.is_object()) return;
  for (const auto& [key, value] : others.items()) {
    if (!object.contains(key)) object[key] = value;
  }
}

}  // namespace atp::policy
