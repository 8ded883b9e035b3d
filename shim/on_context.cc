// SPDX-License-Identifier: Apache-2.0
#include "shim/on_context.h"

namespace atp::shim {

void ForgetPrimary(CUdevice device) {
  const CUcontext context = PrimaryContextOf(device);
  if (context == nullptr) return;
  ForgetRangesOf(context);
  ForgetMemoryOf(context, device);
  ForgetContext(context);
  ForgetPopulateStream(context);
  ForgetFunctions();
}

}  // namespace atp::shim
