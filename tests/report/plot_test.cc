// SPDX-License-Identifier: Apache-2.0
#include "report/plot.h"

#include <gtest/gtest.h>

namespace atp::report {
namespace {

TEST(Plot, TicksAreRoundAndCoverTheRange) {
  const std::vector<double> ticks = Ticks(0, 37);
  EXPECT_EQ(ticks.front(), 0);
  EXPECT_GE(ticks.back(), 37);
  EXPECT_GE(ticks.size(), 4u);
  EXPECT_LE(ticks.size(), 9u);
  EXPECT_DOUBLE_EQ(ticks[1], 10);
}

TEST(Plot, AChartNamesItsAxesItsSeriesAndItsMarkers) {
  Panel panel{
      "title", "time (s)", "rate (GB/s)", {{"in", "#112233", {{0, 1}, {1, 2}}}}, {{0.5, "knee"}}};
  const std::string svg = RenderSvg("all", {panel}, "a note");
  EXPECT_TRUE(svg.starts_with("<svg"));
  for (const char* text : {"time (s)", "rate (GB/s)", ">in<", "knee", "a note", "#112233"}) {
    EXPECT_NE(svg.find(text), std::string::npos) << text;
  }
}

TEST(Plot, TextOfATraceCannotBreakTheFile) {
  Panel panel{"<script>", "&", "\"", {}, {}};
  const std::string svg = RenderSvg("a\x01<b>", {panel}, "");
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
}

TEST(Plot, AnEmptySeriesIsNoError) {
  Panel panel{"t", "x", "y", {{"none", "#000", {}}}, {}};
  EXPECT_NE(RenderSvg("t", {panel}, "").find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace atp::report
