// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/memory.h"

#include <sys/mman.h>

#include "sim/driver/driver.h"
#include "sim/driver/host_touches.h"

namespace atp::sim {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kSmallLimit = 1 << 20;  // from here on an allocation has chunks of its own
constexpr uint64_t kSmallGranule = 512;  // alignment of small device allocations on current drivers

uint64_t RoundUp(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

CUresult FromMachine(MachineStatus status) {
  switch (status) {
    case MachineStatus::kOk:
      return CUDA_SUCCESS;
    case MachineStatus::kOutOfMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case MachineStatus::kContextDead:
      return CUDA_ERROR_ILLEGAL_ADDRESS;
    case MachineStatus::kInvalidValue:
      break;
  }
  return CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

bool Advised::operator==(const Advised& other) const {
  return read_mostly == other.read_mostly && preferred.type == other.preferred.type &&
         preferred.id == other.preferred.id && last_prefetch.type == other.last_prefetch.type &&
         last_prefetch.id == other.last_prefetch.id && accessed_by == other.accessed_by;
}

void Memory::SmallPieces::Add(uint64_t address, uint64_t bytes) {
  by_address[address] = bytes;
  by_bytes.insert({bytes, address});
}

void Memory::SmallPieces::Take(uint64_t address, uint64_t bytes) {
  by_address.erase(address);
  by_bytes.erase({bytes, address});
}

std::unique_ptr<Allocation> Memory::NewRecord(Context* context, uint64_t address, uint64_t bytes,
                                              MemoryKind kind) {
  auto record = std::make_unique<Allocation>();
  record->begin = address;
  record->bytes = bytes;
  record->kind = kind;
  record->context = context;
  record->device = context->device->index;
  record->host_delta = arena_.Contains(address) ? arena_.device_delta() : 0;
  return record;
}

CUresult Memory::AllocateLarge(Lane lane, int device, uint64_t bytes, uint64_t* address) {
  const CUresult result = FromMachine(driver_.machine().AllocDevice(lane, device, bytes));
  if (result != CUDA_SUCCESS) return result;
  *address = arena_.Allocate(bytes, kBlockBytes);
  if (*address) return CUDA_SUCCESS;
  driver_.machine().FreeDevice(lane, device, bytes);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult Memory::AllocateSmall(Lane lane, int device, uint64_t bytes, uint64_t* address) {
  SmallPieces& pieces = small_[device];
  auto fit = pieces.by_bytes.lower_bound({bytes, 0});
  if (fit == pieces.by_bytes.end()) {
    uint64_t chunk = 0;
    const CUresult result = AllocateLarge(lane, device, kBlockBytes, &chunk);
    if (result != CUDA_SUCCESS) return result;
    pieces.Add(chunk, kBlockBytes);
    fit = pieces.by_bytes.lower_bound({bytes, 0});
  }
  const auto [piece, at] = *fit;
  pieces.Take(at, piece);
  if (piece > bytes) pieces.Add(at + bytes, piece - bytes);
  *address = at;
  return CUDA_SUCCESS;
}

void Memory::FreeSmall(Lane lane, int device, uint64_t address, uint64_t bytes) {
  SmallPieces& pieces = small_[device];
  const uint64_t chunk = address / kBlockBytes * kBlockBytes;
  auto next = pieces.by_address.lower_bound(address);
  if (next != pieces.by_address.begin()) {
    const auto [at, length] = *std::prev(next);
    if (at >= chunk && at + length == address) {
      pieces.Take(at, length);
      address = at;
      bytes += length;
    }
  }
  next = pieces.by_address.lower_bound(address);
  if (next != pieces.by_address.end() && next->first == address + bytes &&
      next->first < chunk + kBlockBytes) {
    const auto [at, length] = *next;
    pieces.Take(at, length);
    bytes += length;
  }
  if (bytes < kBlockBytes) return pieces.Add(address, bytes);
  driver_.machine().FreeDevice(lane, device, kBlockBytes);
  arena_.Free(chunk, kBlockBytes);
}

CUresult Memory::AllocateDevice(Lane lane, Context* context, uint64_t bytes, Allocation** out) {
  const int device = context->device->index;
  const bool small = bytes < kSmallLimit;
  const uint64_t reserved = RoundUp(bytes, small ? kSmallGranule : kBlockBytes);
  if (reserved < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t address = 0;
  const CUresult result = small ? AllocateSmall(lane, device, reserved, &address)
                                : AllocateLarge(lane, device, reserved, &address);
  if (result != CUDA_SUCCESS) return result;
  auto record = NewRecord(context, address, bytes, MemoryKind::kDevice);
  record->reserved = reserved;
  *out = Insert(std::move(record));
  return CUDA_SUCCESS;
}

CUresult Memory::AllocateManaged(Lane lane, Context* context, uint64_t bytes, unsigned flags,
                                 Allocation** out) {
  const uint64_t reserved = RoundUp(bytes, kBlockBytes);
  if (reserved < bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  // Without page faults managed memory cannot exceed the card: it is all on the device when kernels
  // run.
  const bool pageable = driver_.settings().concurrent_managed;
  uint64_t address = 0;
  if (pageable) {
    address = arena_.Allocate(reserved, kBlockBytes);
    if (!address) return CUDA_ERROR_OUT_OF_MEMORY;
  } else {
    const CUresult result = AllocateLarge(lane, context->device->index, reserved, &address);
    if (result != CUDA_SUCCESS) return result;
  }
  arena_.SetProgramAccess(address, RoundUp(bytes, kPage), true);
  if (pageable) driver_.machine().AddManaged(lane, address, RoundUp(bytes, kPage));
  auto record = NewRecord(context, address, bytes, MemoryKind::kManaged);
  record->reserved = reserved;
  record->flags = flags;
  record->advised[address] = {};
  *out = Insert(std::move(record));
  return CUDA_SUCCESS;
}

CUresult Memory::AllocatePinned(Lane, Context* context, uint64_t bytes, unsigned flags,
                                Allocation** out) {
  const uint64_t reserved = RoundUp(bytes, kPage);
  void* memory =
      mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  auto record = NewRecord(context, reinterpret_cast<uint64_t>(memory), bytes, MemoryKind::kPinned);
  record->reserved = reserved;
  record->flags = flags;
  *out = Insert(std::move(record));
  return CUDA_SUCCESS;
}

CUresult Memory::Register(Context* context, uint64_t address, uint64_t bytes, unsigned flags,
                          bool writable) {
  const auto next = allocations_.lower_bound(address);
  const bool overlaps =
      Find(address) || (next != allocations_.end() && next->first < address + bytes);
  if (overlaps) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  auto record = NewRecord(context, address, bytes, MemoryKind::kRegistered);
  record->flags = flags;
  record->writable = writable;
  Insert(std::move(record));
  return CUDA_SUCCESS;
}

void Memory::Free(Lane lane, Allocation* allocation) {
  const uint64_t begin = allocation->begin, reserved = allocation->reserved;
  const int device = allocation->device;
  switch (allocation->kind) {
    case MemoryKind::kDevice:
      if (allocation->bytes < kSmallLimit) {
        FreeSmall(lane, device, begin, reserved);
      } else {
        driver_.machine().FreeDevice(lane, device, reserved);
        arena_.Free(begin, reserved);
      }
      break;
    case MemoryKind::kManaged:
      if (driver_.settings().concurrent_managed) {
        CollectHostTouches(driver_, lane, begin, allocation->end());
        driver_.machine().RemoveManaged(lane, begin);
      } else {
        driver_.machine().FreeDevice(lane, device, reserved);
      }
      arena_.SetProgramAccess(begin, reserved, false);
      arena_.Free(begin, reserved);
      break;
    case MemoryKind::kPinned:
      munmap(reinterpret_cast<void*>(begin), reserved);
      break;
    case MemoryKind::kImported: {
      const uint64_t start = begin / kPage * kPage;
      arena_.UnmapForeign(start, reserved);
      arena_.Free(start, reserved);
      break;
    }
    case MemoryKind::kRegistered:
    case MemoryKind::kPooled:
    case MemoryKind::kMapped:
      break;
  }
  Remove(allocation);
}

Allocation* Memory::Import(Context* context, int file, uint64_t offset, uint64_t bytes) {
  const uint64_t into_page = offset % kPage;
  const uint64_t reserved = RoundUp(into_page + bytes, kBlockBytes);
  const uint64_t start = arena_.Allocate(reserved, kBlockBytes);
  if (!start) return nullptr;
  if (!arena_.MapForeign(start, reserved, file, offset - into_page)) {
    arena_.Free(start, reserved);
    return nullptr;
  }
  auto record = NewRecord(context, start + into_page, bytes, MemoryKind::kImported);
  record->reserved = reserved;
  return Insert(std::move(record));
}

void Memory::FreeAllOf(Lane lane, Context* context) {
  std::vector<Allocation*> doomed;
  for (const auto& [address, allocation] : allocations_) {
    const bool owned =
        allocation->kind != MemoryKind::kPooled && allocation->kind != MemoryKind::kMapped;
    if (allocation->context == context && owned) doomed.push_back(allocation.get());
  }
  for (Allocation* allocation : doomed) Free(lane, allocation);
}

Allocation* Memory::Insert(std::unique_ptr<Allocation> allocation) {
  allocation->id = next_id_++;
  const bool watched = allocation->kind == MemoryKind::kDevice || allocation->IsManaged() ||
                       allocation->kind == MemoryKind::kPooled;
  if (watched && driver_.settings().check_reads)
    allocation->initialised = std::make_unique<std::vector<uint64_t>>(allocation->bytes / 256 + 1);
  Allocation* raw = allocation.get();
  allocations_[raw->begin] = std::move(allocation);
  driver_.trace().Allocated(*raw);
  return raw;
}

void Memory::Remove(Allocation* allocation) {
  driver_.trace().Freed(*allocation);
  allocations_.erase(allocation->begin);
}

void Memory::NoteWritten(uint64_t address, uint64_t bytes) {
  Allocation* written = Find(address);
  if (!written || !written->initialised || bytes == 0) return;
  const uint64_t end = std::min(address + bytes, written->end());
  for (uint64_t word = (address - written->begin) / 4; word <= (end - 1 - written->begin) / 4;
       ++word)
    (*written->initialised)[word / 64] |= uint64_t{1} << (word % 64);
}

Allocation* Memory::Find(uint64_t address) const {
  auto it = allocations_.upper_bound(address);
  if (it == allocations_.begin()) return nullptr;
  Allocation* found = std::prev(it)->second.get();
  return address < found->end() ? found : nullptr;
}

Allocation* Memory::FindRange(uint64_t address, uint64_t bytes) const {
  Allocation* found = Find(address);
  return found && bytes <= found->end() - address ? found : nullptr;
}

std::vector<const Allocation*> Memory::InPage(uint64_t page) const {
  std::vector<const Allocation*> found;
  auto it = allocations_.lower_bound(page + kPage);
  while (it != allocations_.begin()) {
    --it;
    if (it->second->end() <= page) break;
    found.push_back(it->second.get());
  }
  return found;
}

bool MayAccess(const Context& context, const Allocation& allocation) {
  const uint32_t self = 1u << context.device->index;
  switch (allocation.kind) {
    case MemoryKind::kManaged:
    case MemoryKind::kPinned:
    case MemoryKind::kRegistered:
      return true;
    case MemoryKind::kPooled:
      if (allocation.device == context.device->index) return true;
      return (allocation.peers & self) != 0;
    case MemoryKind::kMapped:
      return (allocation.peers & self) != 0;
    case MemoryKind::kDevice:
    case MemoryKind::kImported:
      break;
  }
  if (allocation.device == context.device->index) return true;
  return context.peers.count(allocation.context) != 0;
}

bool DeviceView::Find(uint64_t address, Region* region) const {
  const Allocation* found = driver_.memory().Find(address);
  if (!found || !MayAccess(context_, *found)) return false;
  region->begin = found->begin;
  region->end = found->end();
  region->host_delta = found->host_delta;
  region->writable = found->writable;
  region->initialised = found->initialised ? found->initialised->data() : nullptr;
  return true;
}

bool DeviceView::FindTexture(uint64_t handle, Texture* texture) const {
  const auto found = driver_.textures.find(handle);
  if (found == driver_.textures.end() || found->second.context != &context_) return false;
  *texture = found->second.texture;
  return true;
}

}  // namespace atp::sim
