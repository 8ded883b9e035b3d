// SPDX-License-Identifier: Apache-2.0
#include "sim/exec/variant.h"

#include <atomic>

namespace atp::sim::exec {
namespace {

struct Usable {
  const Variant* list[3];
  size_t count = 0;

  Usable() {
    __builtin_cpu_init();
    list[count++] = &kSse2Variant;
#ifndef ATP_ONLY_SSE2
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (avx2) list[count++] = &kAvx2Variant;
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (avx2 && avx512) list[count++] = &kAvx512Variant;
#endif
  }
};

const Usable& TheUsable() {
  static const Usable usable;
  return usable;
}

std::atomic<const Variant*> g_selected{nullptr};

}  // namespace

std::span<const Variant* const> UsableVariants() { return {TheUsable().list, TheUsable().count}; }

const Variant& CurrentVariant() {
  const Variant* selected = g_selected.load();
  return selected != nullptr ? *selected : *UsableVariants().back();
}

bool SelectVariant(std::string_view name) {
  for (const Variant* variant : UsableVariants()) {
    if (name == variant->name) {
      g_selected = variant;
      return true;
    }
  }
  return false;
}

}  // namespace atp::sim::exec
