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

TEST(TextOfACommand, IsThatOfItsScriptOptionOrPackage) {
  const std::string script = testing::TempDir() + "imports_test.py";
  std::ofstream(script) << "import tinygrad\n";
  EXPECT_EQ(TextOfCommand({"python3", "-u", script, "--torch"}), "import tinygrad\n");
  EXPECT_EQ(TextOfCommand({"python3", "-W", "ignore", script}), "import tinygrad\n");
  EXPECT_EQ(TextOfCommand({"python3", "-c", "import cupy"}), "import cupy");
  EXPECT_EQ(ImportsOf(TextOfCommand({"python3", "-m", "vllm.entrypoints"})), Set{"vllm"});
}

TEST(TextOfACommand, ThatNamesNothingToReadIsEmpty) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"python3", "/no/such/file.py"},
        {"python3", "-c"},
        {"python3", ""},
        {"python3"},
        {}}) {
    EXPECT_EQ(TextOfCommand(command), "");
  }
}

}  // namespace
}  // namespace atp::frameworks
