// SPDX-License-Identifier: Apache-2.0
// Copies and sets.
#include "sim/runtime/copy_shapes.h"
#include "sim/runtime/stream_order/mode.h"

namespace {

Status Copy(const DriverCalls& cu, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cu.MemcpyHtoD(Address(to), from, bytes);
    case cudaMemcpyDeviceToHost:
      return cu.MemcpyDtoH(to, Address(from), bytes);
    case cudaMemcpyDeviceToDevice:
      return cu.MemcpyDtoD(Address(to), Address(from), bytes);
    case cudaMemcpyDefault:
      return cu.Memcpy(Address(to), Address(from), bytes);
    case cudaMemcpyHostToHost: {
      const CUDA_MEMCPY2D copy = Copy2D(to, bytes, from, bytes, bytes, 1, kind);
      return cu.Memcpy2DUnaligned(&copy);
    }
    default:
      return cudaErrorInvalidMemcpyDirection;
  }
}

Status CopyAsync(const DriverCalls& cu, void* to, const void* from, size_t bytes,
                 cudaMemcpyKind kind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return cu.MemcpyHtoDAsync(Address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return cu.MemcpyDtoHAsync(to, Address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return cu.MemcpyDtoDAsync(Address(to), Address(from), bytes, stream);
    case cudaMemcpyDefault:
      return cu.MemcpyAsync(Address(to), Address(from), bytes, stream);
    case cudaMemcpyHostToHost: {
      const CUDA_MEMCPY2D copy = Copy2D(to, bytes, from, bytes, bytes, 1, kind);
      return cu.Memcpy2DAsync(&copy, stream);
    }
    default:
      return cudaErrorInvalidMemcpyDirection;
  }
}

// Address of `offset` within a variable, after checking that `bytes` fit behind it.
Status SymbolRange(const void* symbol, size_t offset, size_t bytes, void** pointer) {
  CUdeviceptr address = 0;
  size_t size = 0;
  const Status status = Registry::Get().FindVariable(symbol, &address, &size);
  if (!status.ok()) return status;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  *pointer = reinterpret_cast<void*>(address + offset);
  return cudaSuccess;
}

Status Set3D(const DriverCalls& cu, cudaPitchedPtr to, int value, cudaExtent extent,
             const cudaStream_t* stream) {
  for (size_t z = 0; z < extent.depth; ++z) {
    const CUdeviceptr slice = Address(to.ptr) + z * to.pitch * to.ysize;
    const auto byte = static_cast<unsigned char>(value);
    const Status status =
        stream ? cu.MemsetD2D8Async(slice, to.pitch, byte, extent.width, extent.height, *stream)
               : cu.MemsetD2D8(slice, to.pitch, byte, extent.width, extent.height);
    if (!status.ok()) return status;
  }
  return cudaSuccess;
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) { return Copy(cu, to, from, bytes, kind); });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return InContext(
      [&](const DriverCalls& cu) { return CopyAsync(cu, to, from, bytes, kind, stream); });
}

cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* from, size_t bytes, size_t offset,
                               cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) {
    void* to = nullptr;
    const Status status = SymbolRange(symbol, offset, bytes, &to);
    return status.ok() ? Copy(cu, to, from, bytes, kind) : status;
  });
}

cudaError_t cudaMemcpyFromSymbol(void* to, const void* symbol, size_t bytes, size_t offset,
                                 cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) {
    void* from = nullptr;
    const Status status = SymbolRange(symbol, offset, bytes, &from);
    return status.ok() ? Copy(cu, to, from, bytes, kind) : status;
  });
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* from, size_t bytes,
                                    size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    void* to = nullptr;
    const Status status = SymbolRange(symbol, offset, bytes, &to);
    return status.ok() ? CopyAsync(cu, to, from, bytes, kind, stream) : status;
  });
}

cudaError_t cudaMemcpyFromSymbolAsync(void* to, const void* symbol, size_t bytes, size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    void* from = nullptr;
    const Status status = SymbolRange(symbol, offset, bytes, &from);
    return status.ok() ? CopyAsync(cu, to, from, bytes, kind, stream) : status;
  });
}

cudaError_t cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    const CUDA_MEMCPY2D copy = Copy2D(to, to_pitch, from, from_pitch, width, height, kind);
    return cu.Memcpy2DUnaligned(&copy);
  });
}

cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (width == 0 || height == 0) return cudaSuccess;
    if (width > to_pitch || width > from_pitch) return cudaErrorInvalidPitchValue;
    const CUDA_MEMCPY2D copy = Copy2D(to, to_pitch, from, from_pitch, width, height, kind);
    return cu.Memcpy2DAsync(&copy, stream);
  });
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parms) {
  return InContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D copy;
    const Status status = Copy3D(*parms, &copy);
    return status.ok() ? Status(cu.Memcpy3D(&copy)) : status;
  });
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parms, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D copy;
    const Status status = Copy3D(*parms, &copy);
    return status.ok() ? Status(cu.Memcpy3DAsync(&copy, stream)) : status;
  });
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parms) {
  return InContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D_PEER copy;
    const Status status = Copy3DPeer(*parms, &copy);
    return status.ok() ? Status(cu.Memcpy3DPeer(&copy)) : status;
  });
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parms, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) {
    CUDA_MEMCPY3D_PEER copy;
    const Status status = Copy3DPeer(*parms, &copy);
    return status.ok() ? Status(cu.Memcpy3DPeerAsync(&copy, stream)) : status;
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (bytes == 0) return cudaSuccess;
    return cu.MemsetD8(Address(to), static_cast<unsigned char>(value), bytes);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (bytes == 0) return cudaSuccess;
    return cu.MemsetD8Async(Address(to), static_cast<unsigned char>(value), bytes, stream);
  });
}

cudaError_t cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (width == 0 || height == 0) return cudaSuccess;
    return cu.MemsetD2D8(Address(to), pitch, static_cast<unsigned char>(value), width, height);
  });
}

cudaError_t cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) -> Status {
    if (width == 0 || height == 0) return cudaSuccess;
    return cu.MemsetD2D8Async(Address(to), pitch, static_cast<unsigned char>(value), width, height,
                              stream);
  });
}

cudaError_t cudaMemset3D(cudaPitchedPtr to, int value, cudaExtent extent) {
  return InContext([&](const DriverCalls& cu) { return Set3D(cu, to, value, extent, nullptr); });
}

cudaError_t cudaMemset3DAsync(cudaPitchedPtr to, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return InContext([&](const DriverCalls& cu) { return Set3D(cu, to, value, extent, &stream); });
}

}  // extern "C"
