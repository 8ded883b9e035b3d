// SPDX-License-Identifier: Apache-2.0
// Reads from a kernel's PTX text what it can do through each pointer among its parameters. Pure
// function; any thread.
//
// Which parameters an address comes from is followed through registers, without regard to the order
// of instructions (PTX ISA 9.0: every register is typed and named, addresses are made by ordinary
// arithmetic). What cannot be followed (a pointer that was loaded from memory, a call of a function
// that writes) makes the answer inexact. An answer is used for guesses only: a wrong one costs
// time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atp::shim {

struct WordAccess {  // of an 8-byte word of the parameter buffer, which may hold a pointer
  bool reads = false, writes = false;
};

struct KernelAccess {
  std::string name;
  bool exact = false;             // false: any parameter may be written
  std::vector<WordAccess> words;  // word i: bytes 8 * i to 8 * i + 7 of the parameter buffer
};

// One entry for each kernel (.entry) of the text, in its order. What is not PTX gives none.
std::vector<KernelAccess> ReadKernelAccess(std::string_view ptx);

}  // namespace atp::shim
