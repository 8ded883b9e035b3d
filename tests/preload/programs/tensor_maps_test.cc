// SPDX-License-Identifier: Apache-2.0
// What a program touches through tensor maps alone is seen, planned and moved like what it touches
// through pointers. On the driver that does nothing: the simulated machine has no tensor maps.
#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {
namespace {

Finished Launch(const std::string& maps) {
  const Finished run = RunChild({ATP_PROGRAM_FOLDER "/tensor_maps", "3000", maps},
                                {{"LD_LIBRARY_PATH", ATP_NOOP_DRIVER_FOLDER},
                                 {"LD_PRELOAD", Preload({ATP_SHIM_FILE})},
                                 {"ATP_BUDGET", "24MiB"},
                                 {"ATP_LOG", "info"}});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run;
}

TEST(TensorMaps, WhatAProgramTouchesThroughThemAloneIsSeenAndMoved) {
  const Finished run = Launch("encoded");
  EXPECT_NE(run.err.find("periods seen"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("device 0: 0 periods seen"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find(" 0.0 MiB to the device"), std::string::npos) << run.err;
}

TEST(TensorMaps, OfUnknownOriginNothingIsSeen) {
  const Finished run = Launch("copied");
  EXPECT_NE(run.err.find("device 0: 0 periods seen"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find(" 0.0 MiB to the device"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace atp::preload
