// SPDX-License-Identifier: Apache-2.0
// Which code a kernel was loaded from, in words that mean the same in every process: handles and
// addresses change from run to run, the bytes of an image do not. By this a program is recognised
// when it runs again (loop_memory.h). Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace atp::shim {

// Of an image as given to the driver's load calls, which has taken it: PTX text, nvcc's container,
// or machine code. Of a large one some pieces are read, evenly spread: nobody waits for the disk.
uint64_t HashOfImage(const void* image);
uint64_t HashOfImageFile(const char* path);  // 0: cannot be read
uint64_t HashOfBytes(std::string_view bytes, uint64_t seed = 0);

// `module`: a CUmodule or CUlibrary.
void RememberCode(const void* module, uint64_t hash);
uint64_t CodeOf(const void* module);  // 0: not known

// Of all images loaded so far, ascending, each once; the smallest ones where there are very many.
std::vector<uint64_t> LoadedCode();

}  // namespace atp::shim
