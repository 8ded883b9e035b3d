// SPDX-License-Identifier: Apache-2.0
// Typed access to the fields of one JSON line, with errors that name line and field. Private to the
// JSON readers; throws only FieldError, which the readers catch.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace atp::policy {

struct FieldError {
  std::string text;
};

// Sizes above this cannot be added up safely, and no machine has them.
constexpr uint64_t kMostBytes = uint64_t{1} << 60;

class Fields {
 public:
  using Json = nlohmann::ordered_json;

  Fields(size_t line, const Json& object) : line_(line), object_(object) {}

  [[noreturn]] void Fail(std::string_view field, std::string_view what) const;
  bool Has(const char* field) const { return object_.contains(field); }
  const Json& Get(const char* field) const;

  std::string String(const char* field) const;
  std::string StringOr(const char* field, std::string otherwise) const;
  uint64_t Count(const char* field, uint64_t most) const;  // an integer in [0, most]
  uint64_t CountOr(const char* field, uint64_t most, uint64_t otherwise) const;
  double Number(const char* field) const;  // finite and not negative
  double NumberOr(const char* field, double otherwise) const;
  bool Bool(const char* field) const;
  const Json& Array(const char* field) const;
  std::string Id(const char* field) const;  // a string, or a number as its digits
  std::string IdOf(std::string_view field, const Json& value) const;

  // The keys that are not in `known`, as the text of an object; empty if there are none.
  std::string Others(std::initializer_list<const char*> known) const;

  size_t line() const { return line_; }

 private:
  size_t line_;
  const Json& object_;
};

// An id as the exchange form writes it: plain digits as a number, else a string.
Fields::Json IdToJson(const std::string& id);
// Adds the keys of `extra` that `object` does not have.
void AddOthers(Fields::Json& object, const std::string& extra);

// Calls visit(Fields) for each line that is not blank; throws FieldError on what is no JSON object.
template <typename Visit>
void EachLine(std::string_view text, Visit visit) {
  size_t line = 0;
  while (!text.empty()) {
    ++line;
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view row = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    Fields::Json object;
    try {
      object = Fields::Json::parse(row);
    } catch (const nlohmann::json::exception& e) {
      const bool last = text.empty();
      throw FieldError{"line " + std::to_string(line) + ": no JSON" +
                       (last ? " (is the file truncated?)" : "") + ": " + e.what()};
    }
    if (!object.is_object()) throw FieldError{"line " + std::to_string(line) + ": no JSON object"};
    visit(Fields(line, object));
  }
}

}  // namespace atp::policy
