// SPDX-License-Identifier: Apache-2.0
// Errors of the stand-in runtime: one value per thread, as cudaGetLastError reports it.
// Driver and runtime errors share their numbers (cuda_runtime_api.h since CUDA 10.1), so a CUresult
// converts by value.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace atp::simrt {

// What a body of an API function returns: either kind of error.
struct Status {
  cudaError_t error;
  Status(cudaError_t e) : error(e) {}                         // NOLINT: implicit on purpose
  Status(CUresult r) : error(static_cast<cudaError_t>(r)) {}  // NOLINT: implicit on purpose
  bool ok() const { return error == cudaSuccess; }
};

// Remembers an error as the thread's last one and returns it. "Not ready" is an answer, not an
// error.
cudaError_t Note(Status status);

// Errors after which a context is lost: cudaGetLastError keeps reporting them.
bool IsSticky(cudaError_t error);

// cudaDeviceReset ends even a sticky error of the calling thread.
void ForgetLastError();

// What not_supported.cc answers: cudaErrorNotSupported, remembered like any error.
int RefuseCall();

}  // namespace atp::simrt
