// SPDX-License-Identifier: Apache-2.0
#include "shim/on_launch.h"

#include "shim/tensor_maps.h"

namespace atp::shim {
void ObserveParameters(Observation* observation, CUfunction function, void** parameters,
                       void** extra) {
  observation->set_function(function);
  const auto word = [&](uint64_t value, WordAccess access) {
    if (!access.reads && !access.writes) return;
    observation->Touch(value, 0, access.reads, access.writes);
  };
  const auto tensor = [&](const TensorExtent& extent) {
    observation->Touch(extent.address, extent.bytes, true, true);
  };
  const FunctionInfo& info = FunctionOf(function);
  observation->set_name(info.name);
  if (extra != nullptr && parameters == nullptr) {
    const PackedArguments packed = ReadExtra(extra);
    VisitPackedWords(info, packed.buffer, packed.bytes, word);
    VisitTensorMaps(packed.buffer, 0, packed.bytes, tensor);
    return;
  }
  if (parameters == nullptr) return;
  VisitParameterWords(info, parameters, word);
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Parameter& parameter = info.parameters[i];
    if (parameter.bytes < sizeof(CUtensorMap)) continue;
    VisitTensorMaps(parameters[i], parameter.offset, parameter.bytes, tensor);
  }
}

}  // namespace atp::shim
