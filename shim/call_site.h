// SPDX-License-Identifier: Apache-2.0
// Who asks for memory. Some libraries export the memory that they allocate to other processes or to
// a network card, which managed memory does not allow: what they allocate stays plain. They are
// known by the names of their files (NCCL, NVSHMEM, UCX, MPI), and by ATP_NATIVE. Others are
// remembered since an export of theirs was refused (exporters.h).
//
// Costs a few loads while no such library is loaded, and with one a lock. Where the direct caller
// is the CUDA runtime the question is who called that one: then the stack is walked (about a
// microsecond). Any thread. No heap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace atp::shim {

// Counts up when the program opens a library, before it is loaded.
extern std::atomic<uint64_t> g_dlopens;

// What the code that called the hook (through the CUDA runtime or not) is known for.
enum class Caller : uint8_t { kOrdinary, kRemembered, kExporter };
Caller KindOfCaller();
inline bool CalledByExporter() { return KindOfCaller() == Caller::kExporter; }
// Its address; 0 = not known. May walk the stack.
uintptr_t CallerAddress();

// "libname.so+0x1234" of such an address, for the log; of the code that called the hook. Cut to
// `size`.
void DescribeAddress(uintptr_t address, char* text, size_t size);
void DescribeCaller(char* text, size_t size);

void ResetCallSitesAfterFork();

// The library that called the hook has exported memory, and was refused: remembered from now on.
// False: nothing new.
bool RememberCaller();

// For tests: does a file of this name export what it allocates? `extra`: ATP_NATIVE's list.
bool ExportsMemory(const char* path, const char* extra);

}  // namespace atp::shim
