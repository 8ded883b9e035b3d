// SPDX-License-Identifier: Apache-2.0
#include "frameworks/recognise.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace atp::frameworks {
namespace {

namespace fs = std::filesystem;
using Variables = std::map<std::string, std::string>;

Variables* environment = nullptr;  // of the running test

const char* Lookup(const char* name) {
  const auto found = environment->find(name);
  return found == environment->end() ? nullptr : found->second.c_str();
}

// A virtual environment that holds what a test installs, and a folder for its scripts.
class Recognition : public testing::Test {
 protected:
  void SetUp() override {
    environment = &environment_;
    fs::create_directories(Site());
    Write("environment/pyvenv.cfg", "include-system-site-packages = false\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string Python() const { return root_ / "environment/bin/python3"; }
  fs::path Site() const { return root_ / "environment/lib/python3.11/site-packages"; }
  void Install(const std::string& package) { fs::create_directory(Site() / package); }
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(root_ / name) << text;
    return root_ / name;
  }

  std::vector<Recognised> Of(std::vector<std::string> command) {
    return Recognise(command[0], command, Lookup);
  }
  // Python with this text.
  std::vector<Recognised> OfText(const std::string& text) { return Of({Python(), "-c", text}); }

  static Variables Set(const std::vector<Recognised>& all) {
    Variables set;
    for (const Recognised& found : all) {
      for (const Variable& variable : found.set) set.emplace(variable.name, variable.value);
    }
    return set;
  }
  static std::string Keys(const std::vector<Recognised>& all) {
    std::string keys;
    for (const Recognised& found : all)
      keys += std::string(keys.empty() ? "" : " ") + found.profile->key;
    return keys;
  }

  Variables environment_;
  fs::path root_ = testing::TempDir() + "recognise_test." +
                   testing::UnitTest::GetInstance()->current_test_info()->name();
};

const Variables kJax = {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
                        {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}};

TEST_F(Recognition, AnImportIsEnough) {
  const auto all = OfText("import jax.numpy as jnp");
  EXPECT_EQ(Keys(all), "jax");
  EXPECT_EQ(all[0].how, How::kCommand);
  EXPECT_EQ(Set(all), kJax);
}

TEST_F(Recognition, AFrameworkThatAskedForNothingSetsNothing) {
  for (const char* text : {"import tinygrad", "import numba", "import cupy", "import rmm",
                           "import cudf", "import torch"}) {
    EXPECT_EQ(OfText(text).size(), 1u) << text;
    EXPECT_EQ(Set(OfText(text)), Variables{}) << text;
  }
}

TEST_F(Recognition, AScriptThatHidesItsImportsIsJudgedByWhatIsInstalled) {
  EXPECT_EQ(Keys(OfText("import mine")), "");
  Install("tensorflow");
  Install("jax");
  const auto all = OfText("import mine");
  EXPECT_EQ(Keys(all), "jax tensorflow");
  EXPECT_EQ(all[0].how, How::kInstalled);
  EXPECT_EQ(Set(all).at("TF_GPU_ALLOCATOR"), "cuda_malloc_async");
  EXPECT_EQ(Set(all).at("TF_FORCE_GPU_ALLOW_GROWTH"), "true");
}

TEST_F(Recognition, WhatChangesTheMemoryThatIsReportedIsNotSetByInstallationAlone) {
  for (const char* package : {"transformers", "accelerate", "vllm"}) Install(package);
  EXPECT_EQ(Keys(OfText("import mine")), "");
  EXPECT_EQ(Set(OfText("import transformers")), (Variables{{"ATP_REPORT_MEMORY", "virtual"}}));
  EXPECT_EQ(Set(OfText("import transformers, vllm")),
            (Variables{{"ATP_REPORT_MEMORY", "physical"}}));
}

TEST_F(Recognition, WhoeverHasSetAVariableHasDecided) {
  for (const char* name : {"XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_ALLOCATOR",
                           "XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"}) {
    environment_ = {{name, "x"}};
    const auto all = OfText("import jax");
    EXPECT_EQ(Set(all), Variables{}) << name;
    EXPECT_STREQ(all[0].decided_by, name);
  }
}

TEST_F(Recognition, AScriptThatLimitsTensorFlowsMemoryHasDecided) {
  EXPECT_EQ(Set(OfText("import tensorflow")).size(), 2u);
  const auto limited = OfText(
      "import tensorflow as tf\ntf.config.set_logical_device_configuration(gpu, [configuration])");
  EXPECT_EQ(Set(limited), Variables{});
  EXPECT_NE(limited[0].decided_by, nullptr);
}

TEST_F(Recognition, PyTorchsAsynchronousBackendWantsToBeNamed) {
  environment_ = {{"ATP_FRAMEWORK", "torch-async"}};
  EXPECT_EQ(Set(OfText("import mine")),
            (Variables{{"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
                       {"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}));
  environment_["PYTORCH_ALLOC_CONF"] = "expandable_segments:True";
  EXPECT_EQ(Set(OfText("import mine")), Variables{});
}

TEST_F(Recognition, ANameReplacesWhatWouldBeRecognised) {
  environment_ = {{"ATP_FRAMEWORK", "ollama"}};
  EXPECT_EQ(Keys(OfText("import jax")), "ollama");
}

TEST_F(Recognition, IsSwitchedOffWithTheShimAndByItself) {
  for (const char* name : {"ATP_POLICY", "ATP_FRAMEWORK"}) {
    for (const char* off : {"off", "0", ""}) {
      environment_ = {{name, off}};
      EXPECT_EQ(Keys(OfText("import jax")), "") << name << "=" << off;
    }
  }
}

TEST_F(Recognition, AValueThatIsNotUnderstoodLeavesTheDefault) {
  environment_ = {{"ATP_FRAMEWORK", "jacks"}};
  EXPECT_EQ(Keys(OfText("import jax")), "jax");
}

TEST_F(Recognition, ProgramsAreKnownByName) {
  EXPECT_EQ(Keys(Of({"/opt/llama.cpp/bin/llama-server", "-m", "x.gguf"})), "llama.cpp");
  EXPECT_EQ(Set(Of({"/usr/local/bin/ollama", "serve"})),
            (Variables{{"ATP_REPORT_MEMORY", "virtual"}}));
}

TEST_F(Recognition, OtherProgramsHaveNoProfileWhateverIsNamed) {
  environment_ = {{"ATP_FRAMEWORK", "jax"}};
  EXPECT_EQ(Keys(Of({"/bin/bash", "-c", "import jax"})), "");
  EXPECT_FALSE(CanHaveProfiles("/bin/bash"));
  EXPECT_TRUE(CanHaveProfiles("/usr/bin/python3.11"));
}

TEST_F(Recognition, AScriptIsJudgedByThePythonInItsFirstLine) {
  const std::string script = Write("tool", "#!" + Python() + " -u\nimport jax\n");
  EXPECT_EQ(Keys(Of({script, "--option"})), "jax");
  const std::string other = Write("other", "#!/bin/sh\nimport jax\n");
  EXPECT_EQ(Keys(Of({other})), "");
  Install("tensorflow");
  environment_["PATH"] = "/no/such/folder:" + std::string(root_ / "environment/bin");
  fs::create_directories(root_ / "environment/bin");
  Write("environment/bin/python3", "");
  fs::permissions(Python(), fs::perms::owner_all);
  const std::string found = Write("found", "#!/usr/bin/env python3\nimport mine\n");
  EXPECT_EQ(Keys(Of({found})), "tensorflow");
}

TEST_F(Recognition, PackagesAreLookedForInPythonpathToo) {
  fs::create_directories(root_ / "more/jax");
  environment_["PYTHONPATH"] = "/nowhere:" + std::string(root_ / "more");
  EXPECT_EQ(Keys(OfText("import mine")), "jax");
}

TEST_F(Recognition, AnEnvironmentThatSeesTheSystemsPackagesHasThoseBesideItsInterpreterToo) {
  fs::create_directories(root_ / "base/lib/python3.11/site-packages/jax");
  fs::create_directories(root_ / "base/bin");
  fs::create_directories(root_ / "environment/bin");
  Write("base/bin/python3.11", "");
  fs::create_symlink(root_ / "base/bin/python3.11", Python());
  EXPECT_EQ(Keys(OfText("import mine")), "");
  Write("environment/pyvenv.cfg", "include-system-site-packages = true\n");
  EXPECT_EQ(Keys(OfText("import mine")), "jax");
}

}  // namespace
}  // namespace atp::frameworks
