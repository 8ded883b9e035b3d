// SPDX-License-Identifier: Apache-2.0
#include "sim/runtime/errors.h"

namespace atp::simrt {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

struct Entry {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr Entry kEntries[] = {
#define ERROR_NAME(name, text) {name, #name, text},
#include "sim/runtime/errors.def"
#undef ERROR_NAME
};

const Entry* Find(cudaError_t error) {
  for (const Entry& entry : kEntries) {
    if (entry.error == error) return &entry;
  }
  return nullptr;
}

}  // namespace

cudaError_t Note(Status status) {
  if (status.error != cudaSuccess && status.error != cudaErrorNotReady) last_error = status.error;
  return status.error;
}

bool IsSticky(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
      return true;
    default:
      return false;
  }
}

void ForgetLastError() { last_error = cudaSuccess; }

int RefuseCall() { return Note(cudaErrorNotSupported); }

}  // namespace atp::simrt

using atp::simrt::Find;
using atp::simrt::IsSticky;

extern "C" {

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = atp::simrt::last_error;
  if (!IsSticky(error)) atp::simrt::last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError(void) { return atp::simrt::last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  const auto* entry = Find(error);
  return entry ? entry->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const auto* entry = Find(error);
  return entry ? entry->text : "unrecognized error code";
}

}  // extern "C"
