// SPDX-License-Identifier: Apache-2.0
#include "shim/on_launch.h"

#include "shim/tensor_maps.h"

namespace atp::shim {
namespace {

// visit(word) calls word(value, access) for each word where a pointer can be.
template <typename Visit>
void ScanWords(Observation* observation, Visit visit) {
  Observation::Scan scan(observation);
  visit([&](uint64_t value, WordAccess access) {
    if (access.reads || access.writes) scan.Touch(value, access.reads, access.writes);
  });
}

}  // namespace

void ObserveParameters(Observation* observation, const FunctionInfo& info, const LaunchShape& shape,
                       void** parameters, void** extra) {
  const auto tensor = [&](const TensorExtent& extent) {
    observation->Touch(extent.address, extent.bytes, true, true);
  };
  LaunchArguments arguments;
  arguments.info = info.known ? &info : nullptr;
  arguments.shape = shape;
  if (extra != nullptr && parameters == nullptr) {
    const PackedArguments packed = ReadExtra(extra);
    arguments.packed = packed.buffer;
    arguments.packed_bytes = packed.bytes;
    observation->set_arguments(arguments);
    ScanWords(observation,
              [&](auto word) { VisitPackedWords(info, packed.buffer, packed.bytes, word); });
    VisitTensorMaps(packed.buffer, 0, packed.bytes, tensor);
    return;
  }
  if (parameters == nullptr) return;
  arguments.parameters = parameters;
  observation->set_arguments(arguments);
  ScanWords(observation, [&](auto word) { VisitParameterWords(info, parameters, word); });
  for (size_t i = 0; i < info.parameters.size(); ++i) {
    const Parameter& parameter = info.parameters[i];
    if (parameter.bytes < sizeof(CUtensorMap)) continue;
    VisitTensorMaps(parameters[i], parameter.offset, parameter.bytes, tensor);
  }
}

}  // namespace atp::shim
