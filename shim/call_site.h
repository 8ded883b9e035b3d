// SPDX-License-Identifier: Apache-2.0
// Who asks for memory. Some libraries export the memory that they allocate to other processes or to
// a network card, which managed memory does not allow: what they allocate stays plain. They are
// known by the names of their files (NCCL, NVSHMEM, UCX, MPI), and by ATP_NATIVE.
//
// Costs a few loads while no such library is loaded; with one, the stack is walked, because the
// caller may be the CUDA runtime, and then the question is who called that one. Any thread. No
// heap.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace atp::shim {

// Counts up when the program opens a library, before it is loaded.
extern std::atomic<uint64_t> g_dlopens;

// True when the code that called the hook (through the CUDA runtime or not) is such a library's.
bool CalledByExporter();

// "libname.so+0x1234" of the code that called the hook, for the log. Cut to `size`.
void DescribeCaller(char* text, size_t size);

// For tests: does a file of this name export what it allocates? `extra`: ATP_NATIVE's list.
bool ExportsMemory(const char* path, const char* extra);

}  // namespace atp::shim
