// SPDX-License-Identifier: Apache-2.0
// Cuts PTX text into functions and instructions: only as much of its grammar as the analysis of
// accesses needs. Views point into the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace atp::shim {

struct PtxInstruction {
  std::string_view opcode;  // with its suffixes, without the predicate
  std::vector<std::string_view> operands;
};

struct PtxParameter {
  std::string_view name;
  uint32_t offset = 0, bytes = 0;  // in the parameter buffer
};

struct PtxFunction {
  bool is_kernel = false;
  std::string_view name;
  std::vector<PtxParameter> parameters;  // of kernels
  std::vector<PtxInstruction> body;      // empty: declared only
};

// `text` has no comments (WithoutComments).
std::vector<PtxFunction> ReadPtxFunctions(std::string_view text);
// Comments and the line directives .loc and .file become blanks.
std::string WithoutComments(std::string_view ptx);

// Names in an operand: registers, parameters and other symbols. "[%rd1+8]" has one, "{%f1,%f2}"
// two.
std::vector<std::string_view> NamesIn(std::string_view operand);
// True when `opcode` has this part between its dots: HasPart("ld.global.nc.f32", "global").
bool HasPart(std::string_view opcode, std::string_view part);

}  // namespace atp::shim
