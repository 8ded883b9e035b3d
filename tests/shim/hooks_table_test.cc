// SPDX-License-Identifier: Apache-2.0
// Every row of hooks.def is what cudaTypedefs.h says: the type under the row's name, version and
// twin is that of the row's symbol. So a look-up of that name and version gives a function of
// exactly the hook's signature. Compiled, the table is right; the rest checks documents and names.
#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <type_traits>

#include "shim/resolve.h"

namespace atp::shim {
namespace {

std::string Read(const std::string& path) {
  std::ifstream file(std::string(ATP_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(HooksTable, EveryRowIsFoundByItsNameAndHasAHook) {
  std::set<std::string> symbols;
  for (const HookRow& row : kHooks) {
    EXPECT_EQ(HookOfName(row.symbol), &row);
    EXPECT_NE(row.hook, nullptr);
    EXPECT_TRUE(symbols.insert(row.symbol).second) << row.symbol << " stands twice";
  }
  EXPECT_EQ(HookOfName("cuMemAlloc"), nullptr);  // the 32-bit form is not hooked
  EXPECT_EQ(HookOfName("cuda"), nullptr);
}

TEST(HooksTable, NamesAndTwinsFollowFromTheSymbol) {
  for (const HookRow& row : kHooks) {
    const std::string symbol = row.symbol;
    EXPECT_TRUE(symbol.starts_with(row.name)) << symbol;
    const bool ptsz = symbol.ends_with("_ptsz"), ptds = symbol.ends_with("_ptds");
    EXPECT_EQ(row.twin, ptsz ? Twin::kPtsz : ptds ? Twin::kPtds : Twin::kLegacy) << symbol;
  }
}

TEST(HooksTable, AHookedSymbolHasItsPerThreadTwinHookedToo) {
  std::set<std::string> rows;
  for (const HookRow& row : kHooks) rows.insert(row.symbol);
  for (const HookRow& row : kHooks) {
    if (row.twin == Twin::kLegacy) continue;
    const std::string symbol = row.symbol;
    EXPECT_EQ(rows.count(symbol.substr(0, symbol.size() - 5)), 1u) << symbol;
  }
}

// The function that cuGetProcAddress gives for a row's name, version and twin has the row's very
// type.
#define ATP_PFN_kLegacy(name, version) PFN_##name##_v##version
#define ATP_PFN_kPtsz(name, version) PFN_##name##_v##version##_ptsz
#define ATP_PFN_kPtds(name, version) PFN_##name##_v##version##_ptds
#define HOOK(symbol, need, name, version, twin, body, parameters, arguments)        \
  static_assert(std::is_same_v<ATP_PFN_##twin(name, version), decltype(&::symbol)>, \
                #symbol " is not what cudaTypedefs.h says");
#include "shim/hooks.def"
#undef HOOK

TEST(HooksTable, EveryHookIsDocumented) {
  const std::string document = Read("docs/hooks.md");
  for (const HookRow& row : kHooks) {
    const std::string quoted = std::string("`").append(row.symbol).append("`");
    EXPECT_NE(document.find(quoted), std::string::npos)
        << row.symbol << " has no line in docs/hooks.md";
  }
}

TEST(HooksTable, ExportsAreTheRowsTheLoadersAndThoseOfNvmlAndNothingElse) {
  std::set<std::string> expected = {"dlopen", "dlsym", "nvmlDeviceGetMemoryInfo",
                                    "nvmlDeviceGetMemoryInfo_v2"},
                        golden;
  for (const HookRow& row : kHooks) expected.insert(row.symbol);
  std::stringstream lines(Read("tests/shim/exports.golden"));
  for (std::string line; lines >> line;) golden.insert(line);
  EXPECT_EQ(golden, expected);
}

}  // namespace
}  // namespace atp::shim
