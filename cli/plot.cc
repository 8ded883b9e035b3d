// SPDX-License-Identifier: Apache-2.0
#include "cli/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace atp::cli {
namespace {

constexpr double kWidth = 960;
// A word that a line may cross.
constexpr const char* kHalo =
    "fill=\"#333\" paint-order=\"stroke\" stroke=\"white\" stroke-width=\"5\"";
constexpr double kLeft = 78, kRight = 22, kTop = 58, kBottom = 52, kTitle = 40, kNote = 30;

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", std::fabs(value) < 1e-12 ? 0 : value);
  return text;
}

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

std::string Text(double x, double y, const std::string& text, const std::string& attributes) {
  return "<text x=\"" + Number(x) + "\" y=\"" + Number(y) + "\" " + attributes + ">" +
         Escaped(text) + "</text>\n";
}

std::string Line(double x1, double y1, double x2, double y2, const std::string& attributes) {
  return "<line x1=\"" + Number(x1) + "\" y1=\"" + Number(y1) + "\" x2=\"" + Number(x2) +
         "\" y2=\"" + Number(y2) + "\" " + attributes + "/>\n";
}

class PanelPainter {
 public:
  PanelPainter(const Panel& panel, double top) : panel_(panel), top_(top) {
    bool first = true;
    for (const Series& s : panel.series) {
      for (const auto& [x, y] : s.points) {
        x_low_ = first ? x : std::min(x_low_, x);
        x_high_ = first ? x : std::max(x_high_, x);
        y_high_ = std::max(y_high_, y);
        first = false;
      }
    }
    if (panel.y_max > 0) y_high_ = panel.y_max;
    if (x_high_ <= x_low_) x_high_ = x_low_ + 1;
    if (y_high_ <= 0) y_high_ = 1;
    // Room above what is drawn, so that a line along the top is seen.
    if (panel.y_max <= 0) y_high_ *= 1.08;
  }

  std::string Paint() { return Axes() + Lines() + Markers() + Legend(); }

 private:
  double PlotTop() const { return top_ + kTop; }
  double PlotBottom() const { return top_ + panel_.height - kBottom; }
  double X(double x) const {
    return kLeft + (x - x_low_) / (x_high_ - x_low_) * (kWidth - kLeft - kRight);
  }
  double Y(double y) const {
    return PlotBottom() - std::min(y, y_high_) / y_high_ * (PlotBottom() - PlotTop());
  }

  std::string Axes() const {
    std::string svg = Text(kLeft, top_ + 20, panel_.title, "font-size=\"15\" font-weight=\"bold\"");
    for (double y : Ticks(0, y_high_)) {
      if (y > y_high_ * (1 + 1e-9)) continue;
      svg += Line(kLeft, Y(y), kWidth - kRight, Y(y), "stroke=\"#e3e3e3\"");
      svg += Text(kLeft - 8, Y(y) + 4, Number(y), "text-anchor=\"end\"");
    }
    for (double x : Ticks(x_low_, x_high_)) {
      if (x < x_low_ - 1e-12 || x > x_high_ + 1e-12) continue;
      svg += Line(X(x), PlotBottom(), X(x), PlotBottom() + 5, "stroke=\"#333\"");
      svg += Text(X(x), PlotBottom() + 19, Number(x), "text-anchor=\"middle\"");
    }
    svg += Line(kLeft, PlotBottom(), kWidth - kRight, PlotBottom(), "stroke=\"#333\"");
    svg += Line(kLeft, PlotTop(), kLeft, PlotBottom(), "stroke=\"#333\"");
    svg += Text((kLeft + kWidth - kRight) / 2, PlotBottom() + 40, panel_.x_label,
                "text-anchor=\"middle\" font-size=\"13\"");
    const double middle = (PlotTop() + PlotBottom()) / 2;
    return svg + "<text transform=\"translate(20 " + Number(middle) +
           ") rotate(-90)\" text-anchor=\"middle\" font-size=\"13\">" + Escaped(panel_.y_label) +
           "</text>\n";
  }

  std::string Lines() const {
    std::string svg;
    for (const Series& s : panel_.series) {
      if (s.points.empty()) continue;
      std::string path;
      for (const auto& [x, y] : s.points) path += Number(X(x)) + "," + Number(Y(y)) + " ";
      if (s.filled) {
        svg += "<polygon points=\"" + Number(X(s.points.front().first)) + "," +
               Number(PlotBottom()) + " " + path + Number(X(s.points.back().first)) + "," +
               Number(PlotBottom()) + "\" fill=\"" + s.color + "\" fill-opacity=\"0.25\"/>\n";
      }
      svg += "<polyline points=\"" + path + "\" fill=\"none\" stroke=\"" + s.color +
             "\" stroke-width=\"1.8\"" + (s.dashed ? " stroke-dasharray=\"7 5\"" : "") + "/>\n";
    }
    return svg;
  }

  std::string Markers() const {
    std::string svg;
    double y = PlotBottom() - 10;
    for (const Marker& m : panel_.markers) {
      svg +=
          Line(X(m.x), PlotTop(), X(m.x), PlotBottom(), "stroke=\"#555\" stroke-dasharray=\"2 4\"");
      const bool right_half = X(m.x) > kWidth * 0.7;
      svg += Text(X(m.x) + (right_half ? -6 : 6), y, m.text,
                  std::string(kHalo) + (right_half ? " text-anchor=\"end\"" : ""));
      y -= 17;
    }
    return svg;
  }

  // In one row between the title and the plot.
  std::string Legend() const {
    std::string svg;
    double x = kLeft;
    const double y = top_ + 42;
    for (const Series& s : panel_.series) {
      svg += Line(x, y - 4, x + 26, y - 4,
                  "stroke=\"" + s.color + "\" stroke-width=\"3\"" +
                      (s.dashed ? " stroke-dasharray=\"7 5\"" : ""));
      svg += Text(x + 32, y, s.name, "");
      x += 32 + 7.2 * double(s.name.size()) + 24;
    }
    return svg;
  }

  const Panel& panel_;
  const double top_;
  double x_low_ = 0, x_high_ = 0, y_high_ = 0;
};

}  // namespace

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
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + Number(kWidth) +
                    "\" height=\"" + Number(height) + "\" viewBox=\"0 0 " + Number(kWidth) + " " +
                    Number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#111\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += Text(kLeft, 28, title, "font-size=\"18\" font-weight=\"bold\"");
  double top = kTitle;
  for (const Panel& panel : panels) {
    svg += PanelPainter(panel, top).Paint();
    top += panel.height;
  }
  return svg + Text(kLeft, height - 12, note, "font-size=\"11\" fill=\"#666\"") + "</svg>\n";
}

}  // namespace atp::cli
