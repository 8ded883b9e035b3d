// SPDX-License-Identifier: Apache-2.0
// What the parser makes of a PTX module: variables, functions, and (on demand) bodies as lists of
// instructions whose operands are resolved to registers, variables, labels and functions. Text
// stays in the module's buffer; names are views into it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/lexer.h"
#include "ptx/opcode.h"

namespace atp::ptx {

enum class Space : uint8_t { kReg, kGlobal, kConst, kShared, kLocal, kParam };

// An address inside an initialiser: 8 (or 4) bytes at `offset` hold the address of `symbol` plus
// `addend`.
struct InitialAddress {
  uint64_t offset = 0;
  std::string_view symbol;
  int64_t addend = 0;
  uint8_t bytes = 8;
};

struct Variable {
  std::string_view name;
  Space space = Space::kGlobal;
  Type type = Type::kB8;
  uint32_t alignment = 1;
  uint64_t bytes = 0;
  bool is_extern = false;
  bool is_managed = false;
  bool is_array = false;
  bool is_pointer = false;  // parameter declared .ptr
  uint32_t reg = 0;         // kReg formal parameters of functions: index in Body::registers
  uint32_t line = 0;
  std::vector<uint8_t> initial;
  std::vector<InitialAddress> addresses;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // index = register
    kInteger,   // bits = two's complement
    kFloat32,   // bits = IEEE single
    kFloat64,   // bits = IEEE double (0d... or decimal)
    kSpecial,   // name = "%tid.x"
    kVariable,  // variable + addend: its address
    kFunction,  // index = function of the module
    kLabel,     // index = instruction
    kVector,    // elements first..first+count
    kPair,      // "a|b": two elements
    kList,      // "(a, b)" of a call
    kSink,      // "_"
    kAddress,   // [element 0 + addend]; element 0 is a register, a variable or an integer;
                // [object, {x, y}] of a texture has a second element
    kName,      // not resolved yet; never seen outside the parser
  };
  Kind kind = Kind::kSink;
  bool negated = false;  // "!p"
  uint32_t index = 0;
  uint32_t first = 0, count = 0;
  uint64_t bits = 0;
  int64_t addend = 0;
  std::string_view name;
  const Variable* variable = nullptr;
};

struct Instruction {
  uint32_t op = 0;  // index in Body::ops
  uint32_t line = 0;
  uint32_t first = 0, count = 0;  // operands
  uint32_t scope = 0;
  int32_t guard = -1;  // predicate register, -1 = none
  bool guard_negated = false;
};

// Prototype of an indirect call, a list of branch targets or of call targets.
struct Prototype {
  std::string_view name;
  std::vector<Variable> returns, params;
  std::vector<uint32_t> targets;  // instruction indices (.branchtargets)
};

struct Body {
  std::vector<Op> ops;  // distinct opcodes of this body
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Type> registers;  // type of each
  std::vector<std::unique_ptr<Variable>>
      locals;  // .local, .shared and call parameters declared inside
  std::vector<Prototype> prototypes;
};

struct Function {
  std::string_view name;
  bool is_entry = false;
  bool has_body = false;
  uint32_t line = 0;
  std::vector<Variable> params, returns;
  uint32_t max_threads = 0;
  uint32_t required_block[3] = {0, 0, 0};
  Lexer body;  // at the token after the opening brace
  // Gathered when the text is first read over, without decoding:
  std::vector<std::string_view>
      names;  // words in operand position that are not registers: variables, functions
  uint32_t instruction_count = 0, register_estimate = 0;
  uint64_t local_bytes = 0, shared_bytes = 0;  // declared inside the body
  uint32_t shared_alignment = 1;
};

}  // namespace atp::ptx
