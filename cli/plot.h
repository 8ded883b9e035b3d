// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG, without any library: panels above each other, axes with round numbers and
// units, a legend. What goes into them is in figures.h. Pure; any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace atp::cli {

struct Series {
  std::string name, color;
  std::vector<std::pair<double, double>> points;
  bool filled = false;  // down to zero
  bool dashed = false;
};

// A vertical line with a word.
struct Marker {
  double x = 0;
  std::string text;
};

struct Panel {
  std::string title, x_label, y_label;  // with units
  std::vector<Series> series;
  std::vector<Marker> markers;
  double y_max = 0;     // 0 = from the data
  double height = 300;  // pixels
};

// `title` stands on top; `note` in small print below.
std::string RenderSvg(const std::string& title, const std::vector<Panel>& panels,
                      const std::string& note);

// 4 to 8 round numbers that cover [low, high].
std::vector<double> Ticks(double low, double high);

}  // namespace atp::cli
