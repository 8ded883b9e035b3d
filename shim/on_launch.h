// SPDX-License-Identifier: Apache-2.0
// Bodies of the launch hooks. While nothing needs watching they are one load and a call.
#pragma once

#include "shim/functions.h"
#include "shim/observation.h"
#include "shim/placement.h"
#include "shim/resolve.h"

namespace atp::shim {

// Adds every pointer among the parameters, given as an array or packed.
void ObserveParameters(Observation* observation, const FunctionInfo& info, const LaunchShape& shape,
                       void** parameters, void** extra);

template <typename Form>  // CUlaunchConfig or the parameters of a graph's node
LaunchShape ShapeOf(const Form& form) {
  return {{form.gridDimX, form.gridDimY, form.gridDimZ},
          {form.blockDimX, form.blockDimY, form.blockDimZ},
          LaunchShape::kOtherWay};
}

template <HookId id>
CUresult OnLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared, CUstream stream,
                        void** parameters, void** extra) {
  const auto submit = [&] {
    return Row<id>::Real()(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  };
  if (!Watching()) return submit();
  const FunctionInfo& info = FunctionOf(function);
  Observation observation(info.identity, info.name, stream, Row<id>::kPerThread);
  ObserveParameters(&observation, info, {{gx, gy, gz}, {bx, by, bz}, shared}, parameters, extra);
  return observation.Submit(false, submit);
}

template <HookId id>
CUresult OnLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                   unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                   CUstream stream, void** parameters) {
  const auto submit = [&] {
    return Row<id>::Real()(function, gx, gy, gz, bx, by, bz, shared, stream, parameters);
  };
  if (!Watching()) return submit();
  const FunctionInfo& info = FunctionOf(function);
  Observation observation(info.identity, info.name, stream, Row<id>::kPerThread);
  ObserveParameters(&observation, info, {{gx, gy, gz}, {bx, by, bz}, LaunchShape::kOtherWay},
                    parameters, nullptr);
  return observation.Submit(false, submit);
}

template <HookId id>
CUresult OnLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** parameters,
                          void** extra) {
  const auto submit = [&] { return Row<id>::Real()(config, function, parameters, extra); };
  if (!Watching() || config == nullptr) return submit();
  const FunctionInfo& info = FunctionOf(function);
  Observation observation(info.identity, info.name, config->hStream, Row<id>::kPerThread);
  LaunchShape shape = ShapeOf(*config);
  if (config->numAttrs == 0) shape.shared_bytes = config->sharedMemBytes;
  ObserveParameters(&observation, info, shape, parameters, extra);
  return observation.Submit(false, submit);
}

}  // namespace atp::shim
