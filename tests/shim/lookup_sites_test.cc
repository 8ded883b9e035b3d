// SPDX-License-Identifier: Apache-2.0
#include "shim/lookup_sites.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

namespace atp::shim {
namespace {

using Sites = std::map<std::pair<Lookup, uintptr_t>, uint64_t>;

Sites All() {
  Sites sites;
  ForEachLookupSite(
      [](Lookup way, const void* caller, uint64_t count, void* all) {
        (*static_cast<Sites*>(all))[{way, reinterpret_cast<uintptr_t>(caller)}] += count;
      },
      &sites);
  return sites;
}

void LookUp(Lookup way, uintptr_t caller) { Count(way, reinterpret_cast<const void*>(caller)); }

// One test, because the table is the process's.
TEST(LookupSites, LookUpsAreCountedByPlaceAndWayUntilTheTableIsFullAndThenInTheTotalsOnly) {
  constexpr uintptr_t kPlace = 0x7fff12345678;
  LookUp(Lookup::kDlsymHandle, kPlace);
  LookUp(Lookup::kDlsymHandle, kPlace);
  LookUp(Lookup::kGetProcAddressV2, kPlace);
  LookUp(Lookup::kDlsymHandle, kPlace + 1);
  Sites sites = All();
  EXPECT_EQ(sites.size(), 3u);
  EXPECT_EQ((sites[{Lookup::kDlsymHandle, kPlace}]), 2u);
  EXPECT_EQ((sites[{Lookup::kGetProcAddressV2, kPlace}]), 1u);

  constexpr uintptr_t kMany = 100'000;
  for (uintptr_t i = 0; i < kMany; ++i) LookUp(Lookup::kDlsymDefault, 0x1000 + 16 * i);
  EXPECT_EQ(g_findings.lookups[static_cast<size_t>(Lookup::kDlsymDefault)], kMany);
  sites = All();
  EXPECT_GT(sites.size(), 100u);
  for (const auto& [site, count] : sites) {
    if (site.first == Lookup::kDlsymDefault) {
      EXPECT_EQ(count, 1u);
    }
  }
  LookUp(Lookup::kDlsymHandle, kPlace);  // what is in it still counts
  EXPECT_EQ((All()[{Lookup::kDlsymHandle, kPlace}]), 3u);
}

}  // namespace
}  // namespace atp::shim
