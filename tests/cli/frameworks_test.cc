// SPDX-License-Identifier: Apache-2.0
#include "cli/frameworks.h"

#include <gtest/gtest.h>

#include <fstream>

namespace atp::cli {
namespace {

std::vector<std::string> Names(const std::vector<Framework>& frameworks) {
  std::vector<std::string> names;
  for (const Framework& framework : frameworks) names.push_back(framework.name);
  return names;
}

using List = std::vector<std::string>;

TEST(Frameworks, AreToldByWhatATextImports) {
  EXPECT_EQ(Names(FrameworksInText("import os\nfrom tinygrad import Tensor\n")), List{"tinygrad"});
  EXPECT_EQ(Names(FrameworksInText("import os, torch.nn as nn, numba\n")),
            (List{"Numba", "PyTorch"}));
  EXPECT_EQ(Names(FrameworksInText("if x:\n    import jax\n    import jax\n")), List{"JAX"});
}

TEST(Frameworks, WordsThatOnlyLookAlikeAreNone) {
  EXPECT_EQ(Names(FrameworksInText("# import torch\nimport torchvision\nprint('import jax')\n"
                                   "from . import torch\ntorch = 1\n")),
            List{});
}

TEST(Frameworks, AreFoundInTheScriptThatACommandNames) {
  const std::string script = testing::TempDir() + "frameworks_test.py";
  std::ofstream(script) << "#!/usr/bin/env python3\nimport tinygrad\n";
  EXPECT_EQ(Names(FrameworksOf("/usr/bin/python3", {"python3", "-u", script, "--torch"})),
            List{"tinygrad"});
  EXPECT_EQ(Names(FrameworksOf("/usr/bin/python3", {"python3", "-W", "ignore", script})),
            List{"tinygrad"});
  EXPECT_EQ(Names(FrameworksOf(script, {script})), List{"tinygrad"});
  std::ofstream(script) << "#!/bin/sh\nimport tinygrad\n";
  EXPECT_EQ(Names(FrameworksOf(script, {script})), List{});
}

TEST(Frameworks, AreFoundInTextAndPackageOfTheCommandLine) {
  EXPECT_EQ(Names(FrameworksOf("python3.11", {"python3.11", "-c", "import cupy"})), List{"CuPy"});
  EXPECT_EQ(Names(FrameworksOf("python", {"python", "-m", "vllm.entrypoints"})), List{"vLLM"});
  EXPECT_EQ(Names(FrameworksOf("python", {"python", "/no/such/file.py"})), List{});
  EXPECT_EQ(Names(FrameworksOf("python", {"python"})), List{});
}

}  // namespace
}  // namespace atp::cli
