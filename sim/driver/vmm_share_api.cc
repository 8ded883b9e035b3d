// SPDX-License-Identifier: Apache-2.0
// Physical memory passed on as a file descriptor: the descriptor of the memory's own file, behind
// whose bytes a record says what it is. The process that made it gets its own memory back; another
// one maps the same bytes. As with IPC, bytes are shared and virtual time is not, and the card of
// the importer is not charged. The bytes live as long as somebody holds a descriptor or a handle.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "sim/driver/driver.h"
#include "sim/driver/vmm.h"

namespace atp::sim {
namespace {

constexpr uint64_t kPage = 4096;

struct Record {
  char magic[16] = "ATP shared mem";
  int64_t process = 0;
  uint64_t number = 0;
  int64_t device = 0;  // index on the machine
};

// The record of a file and the bytes before it; false when it is not such a file.
bool ReadRecord(int file, Record* record, uint64_t* bytes) {
  struct stat status {};
  const int seals = fcntl(file, F_GET_SEALS);
  // Sealed: nobody can take the bytes away under a mapping.
  if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(file, &status) != 0) return false;
  if (status.st_size <= static_cast<off_t>(kPage)) return false;
  *bytes = static_cast<uint64_t>(status.st_size) - kPage;
  const ssize_t got = pread(file, record, sizeof *record, static_cast<off_t>(*bytes));
  return got == static_cast<ssize_t>(sizeof *record) && *bytes % kBlockBytes == 0 &&
         std::memcmp(record->magic, Record().magic, sizeof record->magic) == 0;
}

// A device of the program that has this index on the machine, null when it sees none.
const Device* DeviceWith(const Driver& driver, int64_t index) {
  for (const Device* device : driver.devices()) {
    if (device->index == index) return device;
  }
  return nullptr;
}

// Memory of another process, or of this one when nothing but a descriptor was left of it.
CUresult Import(Call& call, int file, const Record& record, uint64_t bytes, PhysicalMemory** out) {
  const Device* device = DeviceWith(call.driver, record.device);
  if (!device) return CUDA_ERROR_INVALID_DEVICE;
  Arena& arena = call.driver.memory().arena();
  const int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
  const uint64_t storage = own < 0 ? 0 : arena.Allocate(bytes, kBlockBytes);
  if (!storage || !arena.MapForeign(storage, bytes, own, 0)) {
    if (storage) arena.Free(storage, bytes);
    if (own >= 0) close(own);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  auto* memory = new PhysicalMemory;
  memory->storage = storage;
  memory->bytes = bytes;
  memory->prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  memory->prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device->ordinal};
  memory->prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  memory->device = device->index;
  memory->number = call.driver.NextNumber();
  memory->file = own;
  memory->imported = true;
  *out = call.driver.physical.Add(memory);
  return CUDA_SUCCESS;
}

}  // namespace

bool MakeShareable(Driver& driver, PhysicalMemory* memory) {
  Record record;
  record.process = getpid();
  record.number = memory->number;
  record.device = memory->device;
  const int file = memfd_create("atp-sim-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (file < 0) return false;
  const off_t bytes = static_cast<off_t>(memory->bytes);
  if (ftruncate(file, bytes + static_cast<off_t>(kPage)) == 0 &&
      pwrite(file, &record, sizeof record, bytes) == static_cast<ssize_t>(sizeof record) &&
      fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0 &&
      driver.memory().arena().MapForeign(memory->storage, memory->bytes, file, 0)) {
    memory->file = file;
    return true;
  }
  close(file);
  return false;
}

}  // namespace atp::sim

ATP_API cuMemExportToShareableHandle(void* out, CUmemGenericAllocationHandle handle,
                                     CUmemAllocationHandleType type, unsigned long long flags) {
  ATP_CALL(kNeedsInit, cost::kCall);
  const PhysicalMemory* memory = call.driver.physical.Get(reinterpret_cast<void*>(handle));
  if (!out || !memory || flags) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  if (!(memory->prop.requestedHandleTypes & type)) return CUDA_ERROR_INVALID_VALUE;
  const int file = fcntl(memory->file, F_DUPFD_CLOEXEC, 0);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *static_cast<int*>(out) = file;
  return CUDA_SUCCESS;
}

ATP_API cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* out, void* shared,
                                       CUmemAllocationHandleType type) {
  ATP_CALL(kNeedsInit, cost::kCall);
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_NOT_SUPPORTED;
  const int file = static_cast<int>(reinterpret_cast<intptr_t>(shared));
  Record record;
  uint64_t bytes = 0;
  if (!ReadRecord(file, &record, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  PhysicalMemory* memory = nullptr;
  for (PhysicalMemory* ours : call.driver.physical.all()) {
    if (record.process == getpid() && ours->number == record.number && !ours->imported)
      memory = ours;
  }
  if (memory) {
    ++memory->references;
  } else if (const CUresult result = Import(call, file, record, bytes, &memory);
             result != CUDA_SUCCESS) {
    return result;
  }
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(memory);
  return CUDA_SUCCESS;
}
