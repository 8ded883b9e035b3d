// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace atp::report {

const Palette kOnWhite{"#111", "#666", "#e3e3e3", "white"};
const Palette kOnPage{"var(--ink)", "var(--soft)", "var(--grid)", "var(--card)"};

namespace {

constexpr double kWidth = 960;
constexpr double kLeft = 78, kRight = 22, kTitle = 40, kNote = 30;
constexpr double kHead = 30, kLegend = 28, kBottom = 52;  // of a panel: title, legend, below

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", std::fabs(value) < 1e-12 ? 0 : value);
  return text;
}

// Variables of a style sheet are allowed in styles only, and not every reader of files knows those.
std::string Paint(const char* property, const std::string& color) {
  if (color.starts_with("var(")) return std::string(" style=\"") + property + ":" + color + "\"";
  return std::string(" ") + property + "=\"" + color + "\"";
}
std::string Fill(const std::string& color) { return Paint("fill", color); }
std::string Stroke(const std::string& color) { return Paint("stroke", color) + " fill=\"none\""; }

std::string Text(double x, double y, const std::string& text, const std::string& attributes) {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" " + attributes + ">" +
         Escaped(text) + "</text>\n";
}

std::string Line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return "<line x1=\"" + Number(x1) + "\" y1=\"" + Number(y1) + "\" x2=\"" + Number(x2) +
         "\" y2=\"" + Number(y2) + "\"" + attributes + "/>\n";
}

class PanelPainter {
 public:
  PanelPainter(const Panel& panel, const Palette& palette, double top, double head)
      : panel_(panel), palette_(palette), top_(top), head_(head) {
    bool first = true;
    std::map<double, double> stacked;
    for (const Series& s : panel.series) {
      for (const auto& [x, y] : s.points) {
        const double half = s.bars ? panel.bar_width / 2 : 0;
        x_low_ = first ? x - half : std::min(x_low_, x - half);
        x_high_ = first ? x + half : std::max(x_high_, x + half);
        y_high_ = std::max(y_high_, s.bars ? stacked[x] += y : y);
        first = false;
      }
    }
    if (panel.y_max > 0) y_high_ = panel.y_max;
    if (x_high_ <= x_low_) x_high_ = x_low_ + 1;
    if (y_high_ <= 0) y_high_ = 1;
    // Room above what is drawn, so that a line along the top is seen.
    if (panel.y_max <= 0) y_high_ *= 1.08;
  }

  std::string Paint() { return Axes() + Data() + Markers() + Legend(); }

 private:
  double PlotTop() const { return top_ + head_ + kLegend; }
  double PlotBottom() const { return top_ + panel_.height - kBottom; }
  double X(double x) const {
    return kLeft + (x - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    return PlotBottom() - std::min(y, y_high_) / y_high_ * (PlotBottom() - PlotTop());
  }

  std::string Axes() const {
    std::string svg;
    if (head_ > 0) {
      svg += Text(kLeft, top_ + 20, panel_.title,
                  "font-size=\"15\" font-weight=\"bold\"" + Fill(palette_.ink));
    }
    for (double y : Ticks(0, y_high_)) {
      if (y > y_high_ * (1 + 1e-9)) continue;
      svg += Line(kLeft, Y(y), kWidth - kRight, Y(y), Stroke(palette_.grid));
      svg += Text(kLeft - 8, Y(y) + 4, Number(y), "text-anchor=\"end\"" + Fill(palette_.ink));
    }
    for (double x : Ticks(x_low_, x_high_)) {
      if (x < x_low_ - 1e-12 || x > x_high_ + 1e-12) continue;
      svg += Line(X(x), PlotBottom(), X(x), PlotBottom() + 5, Stroke(palette_.ink));
      svg +=
          Text(X(x), PlotBottom() + 19, Number(x), "text-anchor=\"middle\"" + Fill(palette_.ink));
    }
    svg += Line(kLeft, PlotBottom(), kWidth - kRight, PlotBottom(), Stroke(palette_.ink));
    svg += Line(kLeft, PlotTop(), kLeft, PlotBottom(), Stroke(palette_.ink));
    svg += Text((kLeft + kWidth - kRight) / 2, PlotBottom() + 40, panel_.x_label,
                "text-anchor=\"middle\" font-size=\"13\"" + Fill(palette_.ink));
    const double middle = (PlotTop() + PlotBottom()) / 2;
    return svg + "<text transform=\"translate(20 " + Number(middle) +
           ") rotate(-90)\" text-anchor=\"middle\" font-size=\"13\"" + Fill(palette_.ink) + ">" +
           Escaped(panel_.y_label) + "</text>\n";
  }

  std::string Data() const {
    std::string svg;
    std::map<double, double> stacked;
    for (const Series& s : panel_.series) {
      if (s.points.empty()) continue;
      svg += s.dots ? Dots(s) : s.bars ? Bars(s, &stacked) : Curve(s);
    }
    return svg;
  }

  std::string Curve(const Series& s) const {
    std::string path;
    for (const auto& [x, y] : s.points) path += Number(X(x)) + "," + Number(Y(y)) + " ";
    std::string svg;
    if (s.filled) {
      svg += "<polygon points=\"" + Number(X(s.points.front().first)) + "," + Number(PlotBottom()) +
             " " + path + Number(X(s.points.back().first)) + "," + Number(PlotBottom()) + "\"" +
             Fill(s.color) + " fill-opacity=\"0.25\"/>\n";
    }
    return svg + "<polyline points=\"" + path + "\"" + Stroke(s.color) + " stroke-width=\"1.8\"" +
           (s.dashed ? " stroke-dasharray=\"7 5\"" : "") + "/>\n";
  }

  std::string Dots(const Series& s) const {
    std::string svg;
    double labelled = -1e9;  // where the last value at the top stands: they do not overlap
    for (const auto& [x, y] : s.points) {
      const std::string title = "<title>" + Number(x) + ": " + Number(y) + "</title>";
      if (y <= y_high_) {
        svg += "<circle cx=\"" + Number(X(x)) + "\" cy=\"" + Number(Y(y)) + "\" r=\"3.2\"" +
               Fill(s.color) + ">" + title + "</circle>\n";
        continue;
      }
      const double at = X(x), top = PlotTop();
      svg += "<path d=\"M" + Number(at - 5) + " " + Number(top + 9) + "h10l-5 -9z\"" +
             Fill(s.color) + ">" + title + "</path>\n";
      if (at - labelled < 60) continue;
      labelled = at;
      char value[32];
      std::snprintf(value, sizeof value, "%.4g", y);
      const bool at_end = at > kWidth - 90;
      svg += Text(at + (at_end ? -9 : 9), top + 11, value,
                  (at_end ? std::string("text-anchor=\"end\"") : "") + Fill(palette_.ink));
    }
    return svg;
  }

  std::string Bars(const Series& s, std::map<double, double>* stacked) const {
    std::string svg;
    const double half = panel_.bar_width / 2, width = X(half) - X(-half);
    const double gap = width > 4 ? 1 : 0;
    for (const auto& [x, y] : s.points) {
      double& base = (*stacked)[x];
      if (y > 0) {
        svg += "<rect x=\"" + Number(X(x - half)) + "\" y=\"" + Number(Y(base + y)) +
               "\" width=\"" + Number(width - gap) + "\" height=\"" +
               Number(Y(base) - Y(base + y)) + "\"" + Fill(s.color) + "/>\n";
      }
      base += y;
    }
    return svg;
  }

  std::string Markers() const {
    std::string svg;
    double y = PlotBottom() - 10;
    for (const Marker& m : panel_.markers) {
      svg += Line(X(m.x), PlotTop(), X(m.x), PlotBottom(),
                  Stroke(palette_.soft) + " stroke-dasharray=\"2 4\"");
      const bool right_half = X(m.x) > kWidth * 0.7;
      // With a rim, so that a line may cross the word.
      svg +=
          Text(X(m.x) + (right_half ? -6 : 6), y, m.text,
               "paint-order=\"stroke\" stroke-width=\"5\" style=\"fill:" + palette_.ink +
                   ";stroke:" + palette_.paper + "\"" + (right_half ? " text-anchor=\"end\"" : ""));
      y -= 17;
    }
    return svg;
  }

  // In one row between the title and the plot.
  std::string Legend() const {
    std::string svg;
    double x = kLeft;
    const double y = top_ + head_ + 12;
    for (const Series& s : panel_.series) {
      svg += s.dots || s.bars ? "<rect x=\"" + Number(x + 8) + "\" y=\"" + Number(y - 9) +
                                    "\" width=\"10\" height=\"10\"" + Fill(s.color) + "/>\n"
                              : Line(x, y - 4, x + 26, y - 4,
                                     Stroke(s.color) + " stroke-width=\"3\"" +
                                         (s.dashed ? " stroke-dasharray=\"7 5\"" : ""));
      svg += Text(x + 32, y, s.name, Fill(palette_.ink));
      x += 32 + 7.2 * double(s.name.size()) + 24;
    }
    return svg;
  }

  const Panel& panel_;
  const Palette& palette_;
  const double top_, head_;
  double x_low_ = 0, x_high_ = 0, y_high_ = 0;
};

std::string Open(double height) {
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + Number(kWidth) + "\" height=\"" +
         Number(height) + "\" viewBox=\"0 0 " + Number(kWidth) + " " + Number(height) +
         "\" font-family=\"sans-serif\" font-size=\"12\">\n";
}

}  // namespace

std::string Escaped(const std::string& text) {
  std::string safe;
  for (char c : text) {
    switch (c) {
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '&':
        safe += "&amp;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
  }
  return safe;
}

std::vector<double> Ticks(double low, double high) {
  const double rough = std::max(high - low, 1e-300) / 6;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= rough) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9), last = std::ceil(high / step - 1e-9);
  for (double i = first; i <= last; ++i) ticks.push_back(i * step);
  return ticks;
}

std::string RenderSvg(const std::string& title, const std::vector<Panel>& panels,
                      const std::string& note) {
  double height = kTitle + kNote;
  for (const Panel& panel : panels) height += panel.height;
  std::string svg = Open(height) + "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += Text(kLeft, 28, title, "font-size=\"18\" font-weight=\"bold\"" + Fill(kOnWhite.ink));
  double top = kTitle;
  for (const Panel& panel : panels) {
    svg += PanelPainter(panel, kOnWhite, top, kHead).Paint();
    top += panel.height;
  }
  return svg + Text(kLeft, height - 12, note, "font-size=\"11\"" + Fill(kOnWhite.soft)) +
         "</svg>\n";
}

std::string RenderPanel(const Panel& panel, const Palette& palette) {
  return Open(panel.height) + PanelPainter(panel, palette, 0, 0).Paint() + "</svg>\n";
}

}  // namespace atp::report
