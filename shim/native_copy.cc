// SPDX-License-Identifier: Apache-2.0
#include "shim/native_copy.h"

#include "shim/loop.h"
#include "shim/resolve.h"
#include "shim/shimlog.h"
#include "shim/vmm_books.h"

namespace atp::shim {
namespace {

CUresult Allow(uint64_t address, uint64_t bytes, int device, unsigned char flags) {
  CUmemAccessDesc access = {};
  access.location = {CU_MEM_LOCATION_TYPE_DEVICE, {device}};
  access.flags = static_cast<CUmemAccess_flags>(flags);
  return real().cuMemSetAccess(address, bytes, &access, 1);
}

// The driver's memory, shown for a moment at an address of its own.
class View {
 public:
  View(MemoryHandle memory, uint64_t bytes) : bytes_(bytes) {
    result_ = real().cuMemAddressReserve(&address_, bytes, 0, 0, 0);
    if (result_ != CUDA_SUCCESS) return;
    result_ = real().cuMemMap(address_, bytes, 0, memory, 0);
    if (result_ != CUDA_SUCCESS) real().cuMemAddressFree(address_, bytes);
  }
  ~View() {
    if (result_ != CUDA_SUCCESS) return;
    real().cuMemUnmap(address_, bytes_);
    real().cuMemAddressFree(address_, bytes_);
  }
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  CUresult result() const { return result_; }
  uint64_t address() const { return address_; }

 private:
  CUdeviceptr address_ = 0;
  uint64_t bytes_;
  CUresult result_ = CUDA_SUCCESS;
};

CUresult Fill(MemoryHandle native, uint64_t from, uint64_t bytes, const AccessFlags* wanted) {
  const View view(native, bytes);
  if (view.result() != CUDA_SUCCESS) return view.result();
  CUresult result = wanted != nullptr ? AllowAsNoted(view.address(), bytes, *wanted) : CUDA_SUCCESS;
  if (result != CUDA_SUCCESS) return result;
  CUdevice device = 0;
  result = real().cuCtxGetDevice(&device);
  if (result != CUDA_SUCCESS) return result;
  result = Allow(view.address(), bytes, device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  if (result != CUDA_SUCCESS) return result;
  return CopyWithin(view.address(), from, bytes) ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}

}  // namespace

bool ReserveAt(uint64_t address, uint64_t bytes) {
  CUdeviceptr got = 0;
  if (real().cuMemAddressReserve(&got, bytes, 0, address, 0) != CUDA_SUCCESS) return false;
  if (got == address) return true;
  real().cuMemAddressFree(got, bytes);
  return false;
}

bool ReservesWhatWasManaged(uint64_t bytes) {
  CUdeviceptr sample = 0;
  if (real().cuMemAllocManaged(&sample, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS) return false;
  return real().cuMemFree_v2(sample) == CUDA_SUCCESS && ReserveAt(sample, bytes) &&
         real().cuMemAddressFree(sample, bytes) == CUDA_SUCCESS;
}

// A fiftieth is for what is not counted, as in the budget (device.cc).
bool FitsBeside(int ordinal, uint64_t bytes) {
  const Device* device = DeviceOf(ordinal);
  if (device == nullptr) return false;
  const uint64_t kept = device->free_at_start / 50 + 2 * kGranule;
  return device->native.load(std::memory_order_relaxed) + bytes + kept <= device->free_at_start;
}

CUresult AllowAsNoted(uint64_t address, uint64_t bytes, const AccessFlags& access) {
  for (int device = 0; device < kMaxDevices; ++device) {
    if (access[device] == 0) continue;
    const CUresult result = Allow(address, bytes, device, access[device]);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult CreateCopy(const CUmemAllocationProp& prop, uint64_t whole, uint64_t from, uint64_t bytes,
                    const AccessFlags* access, MemoryHandle* native) {
  CUresult result = real().cuMemCreate(native, whole, &prop, 0);
  if (result != CUDA_SUCCESS) return result;
  result = Fill(*native, from, bytes, access);
  if (result == CUDA_SUCCESS) return result;
  real().cuMemRelease(*native);
  *native = 0;
  return result;
}

void SayLost(uint64_t address) {
  ATP_LOG_ERROR(
      "the memory at 0x%llx is lost: the driver did not give its addresses back after managed "
      "memory had left them. Remedy: ATP_DISABLE=vmm",
      static_cast<unsigned long long>(address));
}

}  // namespace atp::shim
