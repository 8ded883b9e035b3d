// SPDX-License-Identifier: Apache-2.0
#include "shim/functions.h"

#include <string.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>
#include <new>

#include "shim/code_identity.h"
#include "shim/kernel_images.h"
#include "shim/resolve.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

// 16384 handles, far above what frameworks load (a few thousand kernels). A full table costs sight,
// not correctness.
constexpr size_t kSlots = 1u << 14;
constexpr size_t kMaxProbe = 64;
std::atomic<const FunctionInfo*> table[kSlots];
std::atomic<const void*> kernels[kSlots];
std::atomic<uint64_t> generation{1};
const FunctionInfo kUnknown;

// Entries are never given back: a racing reader may hold one. An arena, because nothing here may
// enter the program's allocator.
std::mutex arena_mutex;
char* arena = nullptr;
size_t arena_left = 0;

void* ArenaTake(size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  std::lock_guard lock(arena_mutex);
  if (bytes > arena_left) {
    constexpr size_t kChunk = 256 << 10;
    void* chunk = mmap(nullptr, kChunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED || bytes > kChunk) return nullptr;
    arena = static_cast<char*>(chunk);
    arena_left = kChunk;
  }
  arena_left -= bytes;
  void* taken = arena;
  arena += bytes;
  return taken;
}

size_t SlotOf(const void* handle) {
  return (reinterpret_cast<uintptr_t>(handle) * 0x9E3779B97F4A7C15u) >> 50;  // top 14 bits
}

bool IsKernel(const void* handle) {
  for (size_t probe = 0; probe < kMaxProbe; ++probe) {
    const void* found = kernels[(SlotOf(handle) + probe) % kSlots].load(std::memory_order_acquire);
    if (found == handle) return true;
    if (found == nullptr) return false;
  }
  return false;
}

CUresult AskParameter(const void* handle, bool kernel, size_t index, size_t* offset,
                      size_t* bytes) {
  if (kernel && real().cuKernelGetParamInfo != nullptr) {
    return real().cuKernelGetParamInfo(static_cast<CUkernel>(const_cast<void*>(handle)), index,
                                       offset, bytes);
  }
  if (real().cuFuncGetParamInfo == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return real().cuFuncGetParamInfo(static_cast<CUfunction>(const_cast<void*>(handle)), index,
                                   offset, bytes);
}

const char* AskName(const void* handle, bool kernel) {
  const char* name = nullptr;
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  if (kernel && real().cuKernelGetName != nullptr) {
    result = real().cuKernelGetName(&name, static_cast<CUkernel>(const_cast<void*>(handle)));
  } else if (!kernel && real().cuFuncGetName != nullptr) {
    result = real().cuFuncGetName(&name, static_cast<CUfunction>(const_cast<void*>(handle)));
  }
  if (result != CUDA_SUCCESS || name == nullptr) return nullptr;
  char* copy = static_cast<char*>(ArenaTake(strlen(name) + 1));  // the module may be unloaded
  return copy != nullptr ? strcpy(copy, name) : nullptr;
}

uint64_t AskCode(const void* handle, bool kernel) {
  if (kernel && real().cuKernelGetLibrary != nullptr) {
    CUlibrary library = nullptr;
    auto* asked = static_cast<CUkernel>(const_cast<void*>(handle));
    return real().cuKernelGetLibrary(&library, asked) == CUDA_SUCCESS ? CodeOf(library) : 0;
  }
  if (kernel || real().cuFuncGetModule == nullptr) return 0;
  CUmodule module = nullptr;
  auto* asked = static_cast<CUfunction>(const_cast<void*>(handle));
  return real().cuFuncGetModule(&module, asked) == CUDA_SUCCESS ? CodeOf(module) : 0;
}

uint64_t IdentityOf(const FunctionInfo& info, uint64_t code) {
  if (info.name == nullptr) return reinterpret_cast<uintptr_t>(info.handle);
  const auto* parameters = reinterpret_cast<const char*>(info.parameters.data());
  return HashOfBytes({parameters, info.parameters.size_bytes()}, HashOfBytes(info.name, code));
}

const FunctionInfo* Ask(const void* handle) {
  constexpr size_t kMaxParameters = 4096;  // parameters take at least a byte of at most 32764
  const bool kernel = IsKernel(handle);
  const uint64_t now = generation.load(std::memory_order_acquire);
  size_t count = 0, offset = 0, bytes = 0;
  CUresult result = CUDA_SUCCESS;
  while (count < kMaxParameters &&
         (result = AskParameter(handle, kernel, count, &offset, &bytes)) == CUDA_SUCCESS) {
    ++count;
  }
  void* memory = ArenaTake(sizeof(FunctionInfo));
  auto* parameters = static_cast<Parameter*>(ArenaTake(count * sizeof(Parameter) + 1));
  if (memory == nullptr || parameters == nullptr) return &kUnknown;
  for (size_t i = 0; i < count; ++i) {
    if (AskParameter(handle, kernel, i, &offset, &bytes) != CUDA_SUCCESS) return &kUnknown;
    parameters[i] = {static_cast<uint32_t>(offset), static_cast<uint32_t>(bytes)};
  }
  auto* info = new (memory) FunctionInfo;
  info->handle = handle;
  info->generation = now;
  // Past the last parameter the driver says "invalid value"; anything else means that it does not
  // answer for this handle.
  info->known = result == CUDA_ERROR_INVALID_VALUE;
  info->name = AskName(handle, kernel);
  if (info->known) info->parameters = {parameters, count};
  info->access = AccessOf(info->name);
  info->only_words = info->access.empty() && AreOnlyWords(info->parameters);
  info->code = AskCode(handle, kernel);
  info->identity = IdentityOf(*info, info->code);
  if (!info->known) {
    static std::atomic<bool> said{false};
    if (!said.exchange(true)) {
      ATP_LOG_WARN(
          "the driver does not tell the parameters of kernel %s (error %d): its memory "
          "accesses are not seen; driver 12.4 or newer is needed",
          info->name != nullptr ? info->name : "?", static_cast<int>(result));
    }
  }
  return info;
}

}  // namespace

const FunctionInfo& FunctionOf(CUfunction function) {
  const uint64_t now = generation.load(std::memory_order_acquire);
  const size_t home = SlotOf(function);
  for (size_t probe = 0; probe < kMaxProbe; ++probe) {
    std::atomic<const FunctionInfo*>& slot = table[(home + probe) % kSlots];
    const FunctionInfo* info = slot.load(std::memory_order_acquire);
    if (info != nullptr && info->handle == function && info->generation == now) [[likely]] {
      return *info;
    }
    // An entry of an older generation is replaced, whichever handle it was for: it is asked again
    // when it is needed.
    if (info != nullptr && info->generation == now) continue;
    const FunctionInfo* asked = Ask(function);
    if (asked->handle != nullptr) slot.compare_exchange_strong(info, asked);
    return *asked;
  }
  return kUnknown;
}

bool AreOnlyWords(std::span<const Parameter> parameters) {
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].offset != i * sizeof(uint64_t)) return false;
    if (parameters[i].bytes != sizeof(uint64_t)) return false;
  }
  return true;
}

void RememberKernel(CUkernel kernel) {
  const size_t home = SlotOf(kernel);
  for (size_t probe = 0; probe < kMaxProbe; ++probe) {
    std::atomic<const void*>& slot = kernels[(home + probe) % kSlots];
    const void* expected = nullptr;
    if (slot.load() == kernel || slot.compare_exchange_strong(expected, kernel)) return;
    if (expected == kernel) return;
  }
}

void ForgetFunctions() { generation.fetch_add(1, std::memory_order_acq_rel); }

PackedArguments ReadExtra(void** extra) {
  PackedArguments packed;
  const size_t* bytes = nullptr;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      packed.buffer = extra[1];
    } else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = static_cast<const size_t*>(extra[1]);
    } else {
      break;
    }
  }
  if (packed.buffer != nullptr && bytes != nullptr) packed.bytes = *bytes;
  return packed;
}

}  // namespace atp::shim
