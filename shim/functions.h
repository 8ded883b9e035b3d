// SPDX-License-Identifier: Apache-2.0
// What the driver says about a kernel's parameters, asked once per function and kept in a lock-free
// table. Called from launch hooks on any thread. A handle may be a CUfunction or a CUkernel in its
// place; those that came from the library functions are remembered as kernels, because the driver
// answers about the two through different calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "shim/cuda_abi.h"
#include "shim/ptx_access.h"

namespace atp::shim {

struct Parameter {
  uint32_t offset = 0;  // in the parameter buffer
  uint32_t bytes = 0;
};

struct FunctionInfo {
  const void* handle = nullptr;
  uint64_t generation = 0;
  bool known = false;          // false: the driver cannot say (before 12.4), or refused
  const char* name = nullptr;  // may be null; lives as long as the process
  // Made of name, code and parameters: the same in every run of the program. Of a function without
  // a name it is made of the handle.
  uint64_t identity = 0;
  uint64_t code = 0;  // the image that it was loaded from (code_identity.h); 0: not known
  std::span<const Parameter> parameters;
  std::span<const WordAccess> access;  // by word of the parameter buffer; empty = not known
  // Each parameter is a word, with no hole between them, and nothing is known of access: so are
  // most kernels that nobody has read.
  bool only_words = false;
};
bool AreOnlyWords(std::span<const Parameter> parameters);

// Calls body(access_at) with what tells the access of the word at an offset; the common case, that
// nothing is known, costs nothing a word.
template <typename Body>
void WithAccess(const FunctionInfo& info, Body body) {
  constexpr WordAccess kAnything{true, true};
  if (info.access.empty()) return body([](size_t) { return kAnything; });
  body([&](size_t offset) {
    return offset / 8 < info.access.size() ? info.access[offset / 8] : kAnything;
  });
}

// Calls visit(at, word, access) for each 8-byte aligned word at `at` of the parameter buffer: in
// all of it, or where parameters lie.
template <typename Visit>
void VisitBufferWords(const FunctionInfo& info, std::span<const char> buffer, bool everywhere,
                      Visit visit) {
  WithAccess(info, [&](auto access_at) {
    const auto range = [&](size_t begin, size_t end) {
      for (size_t at = (begin + 7) / 8 * 8; at + 8 <= std::min(end, buffer.size()); at += 8) {
        uint64_t word;
        __builtin_memcpy(&word, &buffer[at], sizeof word);
        visit(at, word, access_at(at));
      }
    };
    if (everywhere) return range(0, buffer.size());
    for (const Parameter& p : info.parameters) range(p.offset, size_t{p.offset} + p.bytes);
  });
}

// Never null. The first call for a handle asks the driver; later ones take a few nanoseconds.
const FunctionInfo& FunctionOf(CUfunction function);

void RememberKernel(CUkernel kernel);  // this handle is a CUkernel
// Modules or contexts are going: handles may come back for other kernels, so everything known about
// them is asked again.
void ForgetFunctions();

// Calls visit(word, access) for each 8-byte aligned word of the parameters that kernelParams points
// to: where pointers can be.
template <typename Visit>
void VisitParameterWords(const FunctionInfo& info, void* const* kernel_params, Visit visit) {
  if (info.only_words) {
    const size_t count = info.parameters.size();
    for (size_t i = 0; i < count; ++i) {
      uint64_t word;
      __builtin_memcpy(&word, kernel_params[i], sizeof word);
      visit(word, WordAccess{true, true});
    }
    return;
  }
  WithAccess(info, [&](auto access_at) {
    for (size_t i = 0; i < info.parameters.size(); ++i) {
      const Parameter& parameter = info.parameters[i];
      // A pointer inside a structure is aligned with respect to the whole buffer, not to the
      // structure.
      const uint32_t first = (8 - parameter.offset % 8) % 8;
      // What `visit` writes could be any of these, for all that the compiler knows.
      const auto* const bytes = static_cast<const char*>(kernel_params[i]);
      const uint32_t offset = parameter.offset;
      const char* const end = bytes + parameter.bytes;
      for (const char* at = bytes + first; at + 8 <= end; at += 8) {
        uint64_t word;
        __builtin_memcpy(&word, at, sizeof word);
        visit(word, access_at(offset + static_cast<size_t>(at - bytes)));
      }
    }
  });
}

// The packed form of arguments. `extra` is a list of key and value pairs that ends with
// CU_LAUNCH_PARAM_END. An unknown key ends our reading: its form is not known.
struct PackedArguments {
  const void* buffer = nullptr;
  size_t bytes = 0;
};
PackedArguments ReadExtra(void** extra);

// The same for a packed buffer (the `extra` form).
template <typename Visit>
void VisitPackedWords(const FunctionInfo& info, const void* buffer, size_t bytes, Visit visit) {
  WithAccess(info, [&](auto access_at) {
    for (size_t at = 0; at + 8 <= bytes; at += 8) {
      uint64_t word;
      __builtin_memcpy(&word, static_cast<const char*>(buffer) + at, sizeof word);
      visit(word, access_at(at));
    }
  });
}

}  // namespace atp::shim
