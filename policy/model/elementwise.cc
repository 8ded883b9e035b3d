// SPDX-License-Identifier: Apache-2.0
#include "policy/model/elementwise.h"

#include <algorithm>
#include <string_view>

namespace atp::policy {

std::vector<bool> Elementwise(const Trace& trace) {
  constexpr std::string_view kKinds[] = {"Add_Forward",    "Subtract_Forward", "Multiply_Forward",
                                         "Divide_Forward", "Power_Forward",    "Sqrt_Forward",
                                         "Erf_Forward",    "Tanh_Forward",     "ReLU_Forward"};
  std::vector<bool> result;
  for (const Launch& launch : trace.launches) {
    const std::string_view name = launch.name;
    const std::string_view kind = name.substr(0, name.find(':'));
    result.push_back(std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds));
  }
  return result;
}

}  // namespace atp::policy
