// SPDX-License-Identifier: Apache-2.0
// What both bodies of a trace share as JSON: the header, times, and the way errors come back.
// Private to the JSON readers and writers.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "policy/json_fields.h"

namespace atp::policy {

using Json = Fields::Json;

inline constexpr uint64_t kMostLaunches = uint64_t{1} << 32;
inline constexpr uint64_t kMostInt = (uint64_t{1} << 31) - 1;

inline double Seconds(const Fields& fields) { return fields.Number("us") * 1e-6; }

// The shortest microseconds that read back as the same seconds.
inline double Microseconds(double seconds) {
  char text[40];
  for (int digits = 1; digits < 18; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, seconds * 1e6);
    const double us = std::strtod(text, nullptr);
    if (us * 1e-6 == seconds) return us;
  }
  // No number of microseconds reads as just these seconds: the nearest that one reads as, so that
  // what is read and written again stays as it is.
  const double near = seconds * 1e6 * 1e-6;
  return near == seconds ? seconds * 1e6 : Microseconds(near);
}

// A number without a fraction is written without one.
inline Json NumberToJson(double value) {
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

inline std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Where the header says how many rows there are, a file that ends early is noticed.
inline void CheckCount(const Json& header, const char* key, size_t found) {
  const auto it = header.find(key);
  if (it == header.end() || !it->is_number_unsigned() || it->get<uint64_t>() == found) return;
  throw FieldError{"line 1: field \"" + std::string(key) + "\" says " + it->dump() +
                   ", but there are " + std::to_string(found) + " (is the file truncated?)"};
}

inline void CheckCounts(const std::string& extra,
                        std::initializer_list<std::pair<const char*, size_t>> found) {
  if (extra.empty()) return;
  const Json header = Json::parse(extra, nullptr, false);
  for (const auto& [key, count] : found) CheckCount(header, key, count);
}

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

}  // namespace atp::policy
