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
constexpr Variable kPhysical = {"ATP_REPORT_MEMORY", "physical"};

constexpr Profile kTable[] = {
    {"tinygrad",
     "tinygrad",
     "tinygrad",
     nullptr,
     false,
     false,
     {},
     {},
     "asks the driver for each buffer; what lives within a step shares one"},
    {"numba", "Numba", "numba", nullptr, false, false, {}, {}, "asks the driver for each array"},
    {"cupy", "CuPy", "cupy", nullptr, false, false, {}, {}, kCache},
    {"rmm",
     "RMM",
     "rmm",
     nullptr,
     false,
     false,
     {},
     {},
     "asks the driver for each buffer, or cuts them out of the pool that the program chose"},
    {"cudf",
     "cuDF",
     "cudf",
     nullptr,
     false,
     false,
     {},
     {},
     "asks RMM; cudf.pandas asks for managed memory by itself"},
    {"torch-async",
     "PyTorch's asynchronous backend",
     "torch",
     nullptr,
     false,
     true,
     {{"PYTORCH_CUDA_ALLOC_CONF", "backend:cudaMallocAsync"}},
     {"PYTORCH_ALLOC_CONF"},
     "asks the driver for each tensor"},
    {"torch", "PyTorch", "torch", nullptr, false, false, {}, {}, kCache},
    // Its own arena never grows beyond the card; the driver's pool does.
    {"jax",
     "JAX",
     "jax",
     nullptr,
     true,
     false,
     {{"XLA_PYTHON_CLIENT_ALLOCATOR", "cuda_async"}, {"XLA_PYTHON_CLIENT_PREALLOCATE", "false"}},
     {"XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION", "TF_FORCE_UNIFIED_MEMORY"},
     "asks the driver's pool for each array; by itself it takes an arena at the start"},
    {"tensorflow",
     "TensorFlow",
     "tensorflow",
     nullptr,
     true,
     false,
     {{"TF_GPU_ALLOCATOR", "cuda_malloc_async"}, {"TF_FORCE_GPU_ALLOW_GROWTH", "true"}},
     {"TF_FORCE_UNIFIED_MEMORY"},
     "asks the driver's pool for each tensor; by itself it takes an arena at the start"},
    {"vllm",
     "vLLM",
     "vllm",
     nullptr,
     false,
     false,
     {kPhysical},
     {},
     "takes a share of the card for its cache of keys and values"},
    {"transformers",
     "Transformers",
     "transformers",
     nullptr,
     false,
     false,
     {kVirtual},
     {},
     kByFreeMemory},
    {"accelerate",
     "Accelerate",
     "accelerate",
     nullptr,
     false,
     false,
     {kVirtual},
     {},
     kByFreeMemory},
    {"llama.cpp", "llama.cpp", "llama_cpp", "llama-", false, false, {kVirtual}, {}, kByFreeMemory},
    {"ollama", "Ollama", nullptr, "ollama", false, false, {kVirtual}, {}, kByFreeMemory},
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
