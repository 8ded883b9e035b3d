// SPDX-License-Identifier: Apache-2.0
// Physical memory passed on as a file descriptor. Each process has a simulated machine of its own,
// so that a descriptor can be opened by the process that made it, and by no other.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/vmm.h"

namespace atp::sim {
namespace {

// What the file holds. Another process sees that it is not its own.
struct SharedHandle {
  char magic[16] = "ATP shared mem";
  int64_t process = 0;
  uint64_t number = 0;
};

// A descriptor with the record, -1 on failure.
int WriteHandle(const SharedHandle& record) {
  const int fd = memfd_create("atp-sim-memory", MFD_CLOEXEC);
  if (fd < 0) return -1;
  if (write(fd, &record, sizeof record) == static_cast<ssize_t>(sizeof record)) return fd;
  close(fd);
  return -1;
}

}  // namespace
}  // namespace atp::sim

ATP_API cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                     CUmemAllocationHandleType type, unsigned long long flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const PhysicalMemory* memory = call.driver.physical.Get(reinterpret_cast<void*>(handle));
  if (!out || !memory || flags) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (!(memory->prop.requestedHandleTypes & type)) return CUDA_ERROR_INVALID_VALUE;
  SharedHandle record;
  record.process = getpid();
  record.number = memory->number;
  const int fd = WriteHandle(record);
  if (fd < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = fd;
  return CUDA_SUCCESS;
}

ATP_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* shared,
                                       CUmemAllocationHandleType type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  SharedHandle record, ours;
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(shared));
  if (pread(fd, &record, sizeof record, 0) != static_cast<ssize_t>(sizeof record))
    return CUDA_ERROR_INVALID_VALUE;
  if (std::memcmp(record.magic, ours.magic, sizeof ours.magic) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (record.process != getpid()) return CUDA_ERROR_NOT_SUPPORTED;
  for (PhysicalMemory* memory : call.driver.physical.all()) {
    if (memory->number != record.number) continue;
    ++memory->references;
    *out = reinterpret_cast<CUmemGenericAllocationHandle>(memory);
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_VALUE;  // every handle and mapping is gone, and with them the memory
}
