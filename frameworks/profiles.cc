// SPDX-License-Identifier: Apache-2.0
#include "frameworks/profiles.h"

#include <strings.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace atp::frameworks {
namespace {

constexpr char kCache[] = "cuts tensors out of segments in a cache of its own";
constexpr char kByFreeMemory[] = "decides by the free memory how much goes to the card";
constexpr Variable kVirtual = {"ATP_REPORT_MEMORY", "virtual"};

constexpr Profile kTable[] = {
    {.key = "tinygrad",
     .name = "tinygrad",
     .memory = "asks the driver for each buffer; what lives within a step shares one",
     .module = "tinygrad"},
    {.key = "numba",
     .name = "Numba",
     .memory = "asks the driver for each array",
     .module = "numba"},
    {.key = "cupy", .name = "CuPy", .memory = kCache, .module = "cupy"},
    {.key = "rmm",
     .name = "RMM",
     .memory =
         "asks the driver for each buffer, or cuts them out of the pool that the program chose",
     .module = "rmm"},
    {.key = "cudf",
     .name = "cuDF",
     .memory = "asks RMM; cudf.pandas asks for managed memory by itself",
     .module = "cudf"},
    {.key = "torch", .name = "PyTorch", .memory = kCache, .module = "torch"},
    {.key = "torch-async",
     .name = "PyTorch's asynchronous backend",
     .memory = "asks the driver's pool for each tensor",
     .module = "torch",
     .only_if_named = true,
     // Both: the older name alone is warned about since 2.9, the newer one alone is not enough.
     .set = {{"PYTORCH_ALLOC_CONF", "backend:cudaMallocAsync"},
             {"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}}},
    // The arenas of the next two never grow beyond the card; the driver's pool does.
    {.key = "jax",
     .name = "JAX",
     .memory = "asks the driver's pool for each array; by itself it takes an arena at the start",
     .module = "jax",
     .if_installed = true,
     .set = {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"},
             {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}},
     .decisive = {"XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION",
                  "TF_FORCE_UNIFIED_MEMORY"}},
    {.key = "tensorflow",
     .name = "TensorFlow",
     .memory = "asks the driver's pool for each tensor; by itself it takes an arena at the start",
     .module = "tensorflow",
     .if_installed = true,
     .set = {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}, {"TF_FORCE_GPU_ALLOW_GROWTH", "true"}},
     .decisive = {"TF_FORCE_UNIFIED_MEMORY"},
     .words = {"_device_configuration", "per_process_gpu_memory_fraction"}},
    // Before the next two, which it imports itself.
    {.key = "vllm",
     .name = "vLLM",
     .memory = "takes a share of the card for its cache of keys and values",
     .module = "vllm",
     .set = {{"ATP_REPORT_MEMORY", "physical"}}},
    {.key = "transformers",
     .name = "Transformers",
     .memory = kByFreeMemory,
     .module = "transformers",
     .set = {kVirtual}},
    {.key = "accelerate",
     .name = "Accelerate",
     .memory = kByFreeMemory,
     .module = "accelerate",
     .set = {kVirtual}},
    {.key = "llama.cpp",
     .name = "llama.cpp",
     .memory = kByFreeMemory,
     .module = "llama_cpp",
     .program = "llama-",
     .set = {kVirtual}},
    {.key = "ollama",
     .name = "Ollama",
     .memory = kByFreeMemory,
     .program = "ollama",
     .set = {kVirtual}},
};

// Calls visit(key) for each part between commas until one answers false.
template <typename Visit>
bool ForEachKey(std::string_view keys, Visit visit) {
  while (true) {
    const size_t comma = keys.find(',');
    if (!visit(keys.substr(0, comma))) return false;
    if (comma == std::string_view::npos) return true;
    keys.remove_prefix(comma + 1);
  }
}

}  // namespace

std::span<const Profile> Profiles() { return kTable; }

bool IsOff(const char* text) {
  for (const char* off : {"0", "off", "false", "no", ""}) {
    if (strcasecmp(text, off) == 0) return true;
  }
  return false;
}

bool IsFrameworkSetting(const char* text) {
  if (strcasecmp(text, "auto") == 0 || IsOff(text)) return true;
  return ForEachKey(text, [](std::string_view key) {
    return std::any_of(std::begin(kTable), std::end(kTable),
                       [&](const Profile& profile) { return key == profile.key; });
  });
}

bool Names(const char* keys, const Profile& profile) {
  return !ForEachKey(keys, [&](std::string_view key) { return key != profile.key; });
}

}  // namespace atp::frameworks
