// SPDX-License-Identifier: Apache-2.0
#include "policy/model/elementwise.h"

#include <gtest/gtest.h>

namespace atp::policy {
namespace {

TEST(Elementwise, TheKindBeforeTheColonDecides) {
  Trace trace;
  for (const char* name : {"Add_Forward:op7", "ReLU_Forward", "Linear_Forward:layer1",
                           "Add_Forwarder:op1", "Add_Backward:op7", ""}) {
    trace.launches.emplace_back().name = name;
  }
  EXPECT_EQ(Elementwise(trace), (std::vector<bool>{true, true, false, false, false, false}));
}

}  // namespace
}  // namespace atp::policy
