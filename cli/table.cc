// SPDX-License-Identifier: Apache-2.0
#include "cli/table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace atp::cli {
namespace {

std::string Padded(const std::string& text, size_t width, bool left) {
  const std::string space(width - std::min(width, text.size()), ' ');
  return left ? text + space : space + text;
}

}  // namespace

std::vector<size_t> Table::Widths() const {
  std::vector<size_t> widths;
  for (const std::string& cell : header_) widths.push_back(cell.size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size() && i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  return widths;
}

std::string Table::Text() const {
  const std::vector<size_t> widths = Widths();
  std::string text;
  auto line = [&](const std::vector<std::string>& cells) {
    for (size_t i = 0; i < cells.size(); ++i) {
      text += (i > 0 ? "  " : "") + Padded(cells[i], widths[i], i == 0);
    }
    text += "\n";
  };
  line(header_);
  for (const auto& row : rows_) line(row);
  return text;
}

std::string Table::Markdown() const {
  std::string text;
  auto line = [&](const std::vector<std::string>& cells) {
    for (const std::string& cell : cells) text += "| " + cell + " ";
    text += "|\n";
  };
  line(header_);
  for (size_t i = 0; i < header_.size(); ++i) text += i == 0 ? "|---" : "|---:";
  text += "|\n";
  for (const auto& row : rows_) line(row);
  return text;
}

std::string FormatSeconds(double seconds) {
  char text[32];
  const double magnitude = std::fabs(seconds);
  if (magnitude >= 1 || magnitude == 0) {
    std::snprintf(text, sizeof text, "%.4g s", seconds);
    if (magnitude >= 1000) std::snprintf(text, sizeof text, "%.0f s", seconds);
  } else if (magnitude >= 1e-3) {
    std::snprintf(text, sizeof text, "%.4g ms", seconds * 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.4g us", seconds * 1e6);
  }
  return text;
}

std::string FormatRatio(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f", ratio);
  return text;
}

}  // namespace atp::cli
