// SPDX-License-Identifier: Apache-2.0
// The small index structures against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "policy/fenwick.h"
#include "policy/latest_use.h"
#include "policy/max_add_tree.h"
#include "policy/overflow_row.h"

namespace atp::policy {
namespace {

TEST(Rows, FenwickSumsAndFindsWhereASumIsReached) {
  std::mt19937_64 random(1);
  for (size_t n : {1u, 2u, 7u, 64u, 100u}) {
    Fenwick fenwick(n);
    std::vector<int64_t> plain(n, 0);
    for (int step = 0; step < 200; ++step) {
      const size_t i = random() % n;
      const int64_t add = static_cast<int64_t>(random() % 9) - std::min<int64_t>(plain[i], 3);
      fenwick.Add(i, add);
      plain[i] += add;
      const int64_t target = 1 + static_cast<int64_t>(random() % 50);
      size_t reach = 0;
      int64_t sum = 0;
      while (reach < n && (sum += plain[reach]) < target) ++reach;
      ASSERT_EQ(fenwick.Reach(target), reach);
      ASSERT_EQ(fenwick.Prefix(n), std::accumulate(plain.begin(), plain.end(), int64_t{0}));
    }
  }
}

TEST(Rows, MaxAddTreeAddsToRangesAndFindsTheGreatest) {
  std::mt19937_64 random(2);
  for (size_t n : {1u, 3u, 8u, 37u}) {
    std::vector<double> plain(n, 1.0);
    MaxAddTree tree(plain);
    for (int step = 0; step < 300; ++step) {
      size_t a = random() % n, b = random() % n;
      if (a > b) std::swap(a, b);
      const double amount = static_cast<double>(random() % 21) - 10;
      tree.Add(a, b, amount);
      for (size_t i = a; i <= b; ++i) plain[i] += amount;
      size_t c = random() % n, d = random() % n;
      if (c > d) std::swap(c, d);
      ASSERT_EQ(tree.Max(c, d), *std::max_element(plain.begin() + static_cast<long>(c),
                                                  plain.begin() + static_cast<long>(d) + 1));
    }
  }
}

TEST(Rows, OverflowRowFindsTheLastThatExceeds) {
  std::mt19937_64 random(3);
  for (int64_t n : {1, 5, 16, 33}) {
    std::vector<int64_t> plain(static_cast<size_t>(n), -3);
    OverflowRow row(plain);
    for (int step = 0; step < 300; ++step) {
      int64_t a = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      int64_t b = static_cast<int64_t>(random() % static_cast<uint64_t>(n));
      if (a > b) std::swap(a, b);
      const int64_t amount = static_cast<int64_t>(random() % 9) - 4;
      row.Add(a, b, amount);
      for (int64_t i = a; i <= b; ++i) plain[static_cast<size_t>(i)] += amount;
      int64_t last = -1;
      for (int64_t i = a; i <= b; ++i) {
        if (plain[static_cast<size_t>(i)] > 0) last = i;
      }
      ASSERT_EQ(row.LastAbove(a, b), last);
      ASSERT_EQ(row[b], plain[static_cast<size_t>(b)]);
    }
  }
}

TEST(Rows, LatestUseFindsTheFurthestOfAPrefix) {
  std::mt19937_64 random(4);
  for (size_t n : {1u, 2u, 9u, 64u}) {
    std::vector<int64_t> plain(n);
    for (auto& v : plain) v = static_cast<int64_t>(random() % 20) - 5;
    LatestUse tree(plain);
    for (size_t removed = 0; removed <= n; ++removed) {
      for (size_t count = 0; count <= n; ++count) {
        size_t best = n;
        for (size_t i = 0; i < count; ++i) {
          if (plain[i] == LatestUse::kGone) continue;
          if (best == n || plain[i] > plain[best]) best = i;
        }
        const size_t found = tree.Find(count);
        ASSERT_EQ(found == n, best == n);
        if (best < n) {
          ASSERT_EQ(tree[found], plain[best]);
          ASSERT_LT(found, count);
        }
      }
      if (removed == n) break;
      const size_t gone = random() % n;
      tree.Remove(gone);
      plain[gone] = LatestUse::kGone;
    }
  }
}

}  // namespace
}  // namespace atp::policy
