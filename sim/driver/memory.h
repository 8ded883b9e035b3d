// SPDX-License-Identifier: Apache-2.0
// All memory that devices can see: what was allocated, where its bytes are, which device pays for
// it. Plain device memory of at least 1 MiB takes whole 2 MiB chunks of the card; smaller pieces
// share chunks. Called by entry points and tasks under the driver's lock; Find and DeviceView also
// by kernel worker threads while the launching thread holds that lock.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/driver/arena.h"
#include "sim/driver/cuda_api.h"
#include "sim/machine/machine.h"

namespace atp::sim {

struct Context;
struct PhysicalMemory;
struct Pool;
class Driver;

enum class MemoryKind {
  kDevice,      // plain device memory
  kManaged,     // unified memory
  kPinned,      // page-locked host memory of ours
  kRegistered,  // page-locked memory of the program (cuMemHostRegister)
  kPooled,      // from a memory pool, stream ordered
  kMapped,      // a mapping made by the virtual memory calls
  kImported,    // plain device memory of another process (cuIpcOpenMemHandle)
};

// What cuMemAdvise and cuMemPrefetchAsync have said about a piece of managed memory.
struct Advised {
  bool read_mostly = false;
  CUmemLocation preferred{CU_MEM_LOCATION_TYPE_INVALID, 0};
  CUmemLocation last_prefetch{CU_MEM_LOCATION_TYPE_INVALID, 0};
  std::set<int> accessed_by;  // device ordinals, CU_DEVICE_CPU for the host
  bool operator==(const Advised& other) const;
};

struct Allocation {
  uint64_t begin = 0;
  uint64_t bytes = 0;     // as the program asked; a kernel may touch exactly these
  uint64_t reserved = 0;  // bytes taken from the arena; 0 when they are not ours to return
  MemoryKind kind = MemoryKind::kDevice;
  Context* context = nullptr;  // where it was allocated
  int device = 0;              // index on the machine
  int64_t host_delta = 0;      // from the address to the bytes in this process
  bool writable = true;
  PhysicalMemory* physical = nullptr;  // kMapped only
  unsigned flags = 0;                  // attach flags or host allocation flags
  uint64_t id = 0;                     // unique in the process, never reused
  uint32_t peers = 0;                  // bit per device index: may access (pools and mappings)
  Pool* pool = nullptr;
  bool of_graph = false;  // belongs to a memory allocation node
  // ATP_SIM_CHECK=uninitialised: a bit for each 4 bytes that somebody has written. Null for memory
  // whose writers are not all known: of the host, of other processes, mapped more than once.
  std::unique_ptr<std::vector<uint64_t>> initialised;
  std::map<uint64_t, Advised> advised;  // kManaged: first address -> advice, up to the next key

  uint64_t end() const { return begin + bytes; }
  bool IsHost() const { return kind == MemoryKind::kPinned || kind == MemoryKind::kRegistered; }
  bool IsManaged() const { return kind == MemoryKind::kManaged; }
  uint8_t* Bytes(uint64_t address) const {
    return reinterpret_cast<uint8_t*>(address + static_cast<uint64_t>(host_delta));
  }
};

class Memory {
 public:
  Memory(Driver& driver, Arena& arena) : driver_(driver), arena_(arena) {}

  CUresult AllocateDevice(Lane lane, Context* context, uint64_t bytes, Allocation** out);
  CUresult AllocateManaged(Lane lane, Context* context, uint64_t bytes, unsigned flags,
                           Allocation** out);
  CUresult AllocatePinned(Lane lane, Context* context, uint64_t bytes, unsigned flags,
                          Allocation** out);
  CUresult Register(Context* context, uint64_t address, uint64_t bytes, unsigned flags,
                    bool writable);
  void Free(Lane lane, Allocation* allocation);
  // Frees everything that was allocated in a context.
  void FreeAllOf(Lane lane, Context* context);

  // Memory of another process's file: `bytes` at `offset`. Costs the card nothing: the other
  // process's card holds it. Null when it cannot be mapped.
  Allocation* Import(Context* context, int file, uint64_t offset, uint64_t bytes);

  // A piece that somebody else has already backed (pools, mappings). Takes ownership of the record
  // only.
  Allocation* Insert(std::unique_ptr<Allocation> allocation);
  void Remove(Allocation* allocation);

  // Something has been written by a copy, a set or the host.
  void NoteWritten(uint64_t address, uint64_t bytes);

  Allocation* Find(uint64_t address) const;
  // The allocation that holds all of [address, address + bytes), null when there is none.
  Allocation* FindRange(uint64_t address, uint64_t bytes) const;
  // The allocations that have bytes in a page.
  std::vector<const Allocation*> InPage(uint64_t page) const;
  bool IsDeviceAddress(uint64_t address) const { return arena_.Contains(address); }
  const std::map<uint64_t, std::unique_ptr<Allocation>>& all() const { return allocations_; }
  Arena& arena() { return arena_; }

 private:
  struct SmallPieces {  // free pieces of the 2 MiB chunks that small allocations share
    std::map<uint64_t, uint64_t> by_address;
    std::set<std::pair<uint64_t, uint64_t>> by_bytes;
    void Add(uint64_t address, uint64_t bytes);
    void Take(uint64_t address, uint64_t bytes);
  };

  CUresult AllocateLarge(Lane lane, int device, uint64_t bytes, uint64_t* address);
  CUresult AllocateSmall(Lane lane, int device, uint64_t bytes, uint64_t* address);
  void FreeSmall(Lane lane, int device, uint64_t address, uint64_t bytes);
  std::unique_ptr<Allocation> NewRecord(Context* context, uint64_t address, uint64_t bytes,
                                        MemoryKind kind);

  Driver& driver_;
  Arena& arena_;
  std::map<uint64_t, std::unique_ptr<Allocation>> allocations_;
  std::array<SmallPieces, 16> small_;  // by device index
  uint64_t next_id_ = 1;
};

// What kernels of one context may touch.
class DeviceView : public MemoryMap {
 public:
  DeviceView(Driver& driver, const Context& context) : driver_(driver), context_(context) {}
  bool Find(uint64_t address, Region* region) const override;
  bool FindTexture(uint64_t handle, Texture* texture) const override;

 private:
  Driver& driver_;
  const Context& context_;
};

// True when kernels and copies of `context` may access the allocation.
bool MayAccess(const Context& context, const Allocation& allocation);

}  // namespace atp::sim
