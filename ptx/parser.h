// SPDX-License-Identifier: Apache-2.0
// Reads a PTX module. ParseModule reads declarations and runs over the bodies (checking every
// opcode through a callback); ParseBody reads one body in full. Both return false with `error` =
// "line N: ..." on text they do not understand; no text makes them crash or use memory out of
// proportion to its length. Pure: any thread, no global state. Grammar: "PTX ISA" manual,
// version 9.0, chapters 4, 5 and 11.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/ir.h"

namespace atp::ptx {

struct ParsedModule {
  std::string text;  // what all views point into
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<std::unique_ptr<Function>> functions;
  std::unordered_map<std::string_view, const Variable*> variable_by_name;
  std::unordered_map<std::string_view, uint32_t> function_by_name;
  int version_major = 0, version_minor = 0;
  int target = 0;
};

// Answers whether an opcode can run. Asked once for each distinct spelling.
using OpcodeCheck = std::function<bool(std::string_view opcode)>;

bool ParseModule(std::string_view text, const OpcodeCheck& check, ParsedModule* module,
                 std::string* error);

bool ParseBody(const ParsedModule& module, const Function& function, Body* body,
               std::string* error);

// --- shared by the two files of the parser ---

// Reads "[.attrs] .type [.align n] name [dims] [= init]" up to the token after it (which is left
// unread).
class DeclarationReader {
 public:
  DeclarationReader(Lexer* lexer, std::string* error) : lexer_(lexer), error_(error) {}
  // Qualifiers after the space: alignment, vector, type, .ptr ... then one name. `variable` keeps
  // space and flags set before.
  bool ReadType(Variable* variable);
  // One declarator; further ones may follow after a comma with the same type.
  bool ReadName(Variable* variable);
  bool ReadParameters(std::vector<Variable>* list);  // after "(" up to and including ")"
  bool Fail(uint32_t line, std::string message);

 private:
  bool ReadInitializer(Variable* variable);
  bool ReadInitialValue(Variable* variable, uint64_t* offset);
  bool ReadInitialSymbol(Token token, Variable* variable, uint64_t offset, int element);

  Lexer* lexer_;
  std::string* error_;
  int vector_ = 1;
};

// Literal in any spelling to an operand of kind kInteger, kFloat32 or kFloat64.
bool ParseLiteral(std::string_view text, Operand* operand);

}  // namespace atp::ptx
