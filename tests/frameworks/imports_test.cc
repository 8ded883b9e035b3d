// SPDX-License-Identifier: Apache-2.0
#include "frameworks/imports.h"

#include <gtest/gtest.h>

#include <fstream>

namespace atp::frameworks {
namespace {

using Set = std::set<std::string>;

TEST(Imports, AreReadFromTheStartsOfLines) {
  EXPECT_EQ(ImportsOf("import os\nfrom tinygrad import Tensor\n"), (Set{"os", "tinygrad"}));
  EXPECT_EQ(ImportsOf("import os, torch.nn as nn, numba\r\n"), (Set{"os", "torch", "numba"}));
  EXPECT_EQ(ImportsOf("if x:\n    import jax\n\timport cupy"), (Set{"jax", "cupy"}));
  EXPECT_EQ(ImportsOf("import jax; jax.devices()"), Set{"jax"});
}

TEST(Imports, WordsThatOnlyLookAlikeAreNone) {
  EXPECT_EQ(ImportsOf("# import torch\nimport torchvision\nprint('import jax')\n"
                      "from . import torch\ntorch = 1\nimport\nfrom"),
            Set{"torchvision"});
}

TEST(Imports, OfACommandAreThoseOfItsScriptTextOrPackage) {
  const std::string script = testing::TempDir() + "imports_test.py";
  std::ofstream(script) << "import tinygrad\n";
  EXPECT_EQ(ImportsOfCommand({"python3", "-u", script, "--torch"}), Set{"tinygrad"});
  EXPECT_EQ(ImportsOfCommand({"python3", "-W", "ignore", script}), Set{"tinygrad"});
  EXPECT_EQ(ImportsOfCommand({"python3", "-c", "import cupy"}), Set{"cupy"});
  EXPECT_EQ(ImportsOfCommand({"python3", "-m", "vllm.entrypoints"}), Set{"vllm"});
}

TEST(Imports, OfNothingThatCanBeReadAreNone) {
  EXPECT_EQ(ImportsOfCommand({"python3", "/no/such/file.py"}), Set{});
  EXPECT_EQ(ImportsOfCommand({"python3", "-c"}), Set{});
  EXPECT_EQ(ImportsOfCommand({"python3", ""}), Set{});
  EXPECT_EQ(ImportsOfCommand({"python3"}), Set{});
  EXPECT_EQ(ImportsOfCommand({}), Set{});
}

}  // namespace
}  // namespace atp::frameworks
