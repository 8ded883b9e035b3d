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
  size_t scanned = 0;
  LaunchArguments arguments;
  arguments.info = info.known ? &info : nullptr;
  arguments.shape = shape;
  if (extra != nullptr && parameters == nullptr) {
    const PackedArguments packed = ReadExtra(extra);
    arguments.packed = packed.buffer;
    arguments.packed_bytes = packed.bytes;
    ScanWords(observation,
              [&](auto word) { VisitPackedWords(info, packed.buffer, packed.bytes, word); });
    scanned = observation->touch_count();
    VisitTensorMaps(packed.buffer, 0, packed.bytes, tensor);
  } else if (parameters != nullptr) {
    arguments.parameters = parameters;
    ScanWords(observation, [&](auto word) { VisitParameterWords(info, parameters, word); });
    scanned = observation->touch_count();
    for (size_t i = 0; i < info.parameters.size() && g_tensor_maps; ++i) {
      const Parameter& parameter = info.parameters[i];
      if (parameter.bytes < sizeof(CUtensorMap)) continue;
      VisitTensorMaps(parameters[i], parameter.offset, parameter.bytes, tensor);
    }
  } else {
    return;
  }
  arguments.tell_touches = observation->touch_count() == scanned && observation->dropped() == 0;
  observation->set_arguments(arguments);
}

}  // namespace atp::shim
