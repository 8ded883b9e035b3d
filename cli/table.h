// SPDX-License-Identifier: Apache-2.0
// A table for people: aligned columns, or Markdown. Used by the commands that print figures. One
// thread.
#pragma once

#include <string>
#include <vector>

namespace atp::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // The first column is left-aligned, the others to the right.
  std::string Text() const;
  std::string Markdown() const;

 private:
  std::vector<size_t> Widths() const;
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
};

// "12.345 s", "3.20 ms", "17 us": four significant digits.
std::string FormatSeconds(double seconds);
// "1.234", a ratio.
std::string FormatRatio(double ratio);

}  // namespace atp::cli
