// SPDX-License-Identifier: Apache-2.0
// Runs a program on the simulated machine (ATP_SIM_FOLDER), with the preload library
// (ATP_SHIM_FILE) or without, for tests that hold one run against the other.
#pragma once

#include <gtest/gtest.h>

#include "tests/preload/child.h"

namespace atp::preload {

// `more` goes over what a run usually has.
inline Environment OnTinyCard(bool with_shim, const Environment& more = {}) {
  Environment environment = more;
  environment.insert({{"LD_LIBRARY_PATH", ATP_SIM_FOLDER},
                      {"LD_PRELOAD", with_shim ? Preload({ATP_SHIM_FILE}) : Preload({})},
                      {"ATP_SIM_GPU", "tiny"},
                      {"ATP_LOG", "error"}});
  return environment;
}

// The program must end by itself, and well.
inline Finished RunOnTinyCard(const std::vector<std::string>& command, bool with_shim,
                              const Environment& more = {}) {
  const Finished run = RunChild(command, OnTinyCard(with_shim, more));
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err << " signal " << run.signal;
  return run;
}

}  // namespace atp::preload
