// SPDX-License-Identifier: Apache-2.0
// docs/sim.md tells of every cost what costs.def holds.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "sim/machine/costs.h"

namespace atp::sim {
namespace {

std::string Number(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// The table as the documentation must show it.
std::string Table() {
  std::string text = "| cost | unit | " + ProfileNames() + " | what | source |\n";
  for (size_t at = text.find(", "); at != std::string::npos; at = text.find(", ", at))
    text.replace(at, 2, " | ");
  text += "|---|---|";
  for (int i = 0; i < kProfiles; ++i) text += "---|";
  text += "---|---|\n";
  for (const CostRow& row : CostTable()) {
    text += std::string("| ") + row.name + " | " + row.unit;
    for (double value : row.values) text += " | " + Number(value);
    text += std::string(" | ") + row.description + " | " + row.source + " |\n";
  }
  return text;
}

TEST(Documentation, ListsEveryCostWithItsValuesAndSource) {
  std::ifstream file(std::string(ATP_SOURCE_DIR) + "/docs/sim.md");
  std::stringstream content;
  content << file.rdbuf();
  EXPECT_NE(content.str().find(Table()), std::string::npos)
      << "docs/sim.md, section Costs, must hold this table:\n"
      << Table();
}

}  // namespace
}  // namespace atp::sim
