// SPDX-License-Identifier: Apache-2.0
// Charts as SVG, without any library: axes with round numbers and units, a legend, panels above
// each other or one by one for a page. What goes into them is in charts.h and cli/figures.h. Pure;
// any thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace atp::report {

struct Series {
  std::string name, color;
  std::vector<std::pair<double, double>> points;
  bool filled = false;  // down to zero
  bool dashed = false;
  bool dots = false;  // points alone; those above y_max are shown at the top, with their value
  bool bars = false;  // stacked on the bars of the series before
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
  double bar_width = 1;
};

// Colours of what is not data: for a file of its own, or from the style sheet of the page around.
struct Palette {
  std::string ink, soft, grid, paper;
};
extern const Palette kOnWhite, kOnPage;

// `title` stands on top; `note` in small print below. On white.
std::string RenderSvg(const std::string& title, const std::vector<Panel>& panels,
                      const std::string& note);
// One panel without its title, for a page that scales it to its width.
std::string RenderPanel(const Panel& panel, const Palette& palette);

// 4 to 8 round numbers that cover [low, high].
std::vector<double> Ticks(double low, double high);
// For SVG and HTML alike.
std::string Escaped(const std::string& text);

}  // namespace atp::report
