// SPDX-License-Identifier: Apache-2.0
// Finds the PTX text in what a program gives to the module and library calls: the text itself, or a
// container of nvcc's (wrapper or plain) that carries it uncompressed. Nothing is ever
// decompressed, decompiled or translated. Pure function; any thread.
#pragma once

#include <string>

#include "sim/driver/cuda_api.h"

namespace atp::sim {

struct Image {
  CUresult result = CUDA_SUCCESS;
  std::string ptx;    // an own copy of the text
  std::string error;  // one line that says what was found and how to build it instead
};

// Reads the image at `data`. `size` bounds it when it is known (files), 0 when it is not (memory of
// the program).
Image ReadImage(const void* data, size_t size);

// Reads a whole file, empty when that fails.
std::string ReadFile(const char* path);

}  // namespace atp::sim
