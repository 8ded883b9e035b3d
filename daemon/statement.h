// SPDX-License-Identifier: Apache-2.0
// One SQL statement: bind, step, read. Text and blobs that are read live until the next step.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace atp::daemon {

class Statement {
 public:
  Statement(sqlite3* database, const char* sql) {
    sqlite3_prepare_v2(database, sql, -1, &statement_, nullptr);
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  template <std::integral Value>
  void Bind(int place, Value value) {
    sqlite3_bind_int64(statement_, place, static_cast<int64_t>(value));
  }
  void Bind(int place, double value) { sqlite3_bind_double(statement_, place, value); }
  void Bind(int place, const std::string& text) {
    sqlite3_bind_text64(statement_, place, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  }
  void Bind(int place, std::span<const uint8_t> bytes) {
    sqlite3_bind_blob64(statement_, place, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
  }

  // True while there are rows; `done` afterwards says that it was not an error that ended them.
  bool Row() { return (result_ = sqlite3_step(statement_)) == SQLITE_ROW; }
  bool done() const { return result_ == SQLITE_DONE; }

  int64_t Integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string_view Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text != nullptr ? std::string_view(text, Size(column)) : std::string_view();
  }
  std::span<const uint8_t> Blob(int column) const {
    const auto* bytes = static_cast<const uint8_t*>(sqlite3_column_blob(statement_, column));
    return {bytes, Size(column)};
  }
  sqlite3_stmt* get() const { return statement_; }

 private:
  size_t Size(int column) const {
    return static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  }

  sqlite3_stmt* statement_ = nullptr;
  int result_ = SQLITE_OK;
};

}  // namespace atp::daemon
