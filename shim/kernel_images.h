// SPDX-License-Identifier: Apache-2.0
// Remembers the PTX text of what the program loads, and answers what a kernel of a given name does
// through its parameters (ptx_access.h). Texts are copied at load, because the program may free
// them, and read when the first kernel is asked for: a program that fits the card never pays for
// it. Machine code and compressed PTX are left alone: of their kernels nothing is known. Any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shim/ptx_access.h"

namespace atp::shim {

// `image` as given to the driver's load calls: PTX text, or nvcc's container of it. `code`: by
// which it is known (code_identity.h); 0 = by nothing.
void RememberImage(const void* image, uint64_t code = 0);
void RememberImageFile(const char* path, uint64_t code = 0);
// All of such an image, by what it says of its own length.
std::string_view BytesOfImage(const void* image);

// By word of the parameter buffer; empty when the kernel's PTX is not known, or does not let every
// access be followed. Lives as long as the process. Kernels of one name in several images count as
// one that does what any of them does.
std::span<const WordAccess> AccessOf(const char* kernel);

// The texts that hold a kernel of this name, of those that AccessOf has read.
std::vector<std::shared_ptr<const std::string>> TextsWith(const char* kernel);
// Those of them that came with images known by `code`: one of these is what a kernel that was
// loaded from such an image was made of. Empty where that is not sure, because something of an
// image is not kept or not read (compressed, too much text), and where `code` is 0.
std::vector<std::shared_ptr<const std::string>> TextsOf(const char* kernel, uint64_t code);

}  // namespace atp::shim
