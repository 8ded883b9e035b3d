// SPDX-License-Identifier: Apache-2.0
// The parser of one function body, for the two files that hold it: body_parser.cc reads statements
// and declarations, body_operands.cc reads operands and resolves names. Nobody else includes this.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/parser.h"

namespace atp::ptx {

struct RegisterRange {
  uint32_t first = 0, count = 0;
};

struct Scope {
  uint32_t parent = 0;
  std::unordered_map<std::string_view, RegisterRange> ranges;  // "%r" of "%r<9>"
  std::unordered_map<std::string_view, uint32_t> registers;
  std::unordered_map<std::string_view, const Variable*> variables;
  std::unordered_map<std::string_view, uint32_t> labels;
};

class BodyParser {
 public:
  BodyParser(const ParsedModule& module, const Function& function, Body* body, std::string* error)
      : module_(module),
        function_(function),
        body_(body),
        error_(error),
        lexer_(function.body),
        reader_(&lexer_, error),
        scopes_(1) {}

  bool Run();

 private:
  bool Directive(const Token& token);
  bool DeclareRegisters();
  bool DeclareVariables(Space space);
  bool DeclarePrototype(std::string_view name);
  bool DeclareTargets(std::string_view name);
  bool Statement(Token token, int32_t guard, bool negated);
  bool Guard(int32_t* guard, bool* negated);
  bool ReadOperand(Operand* operand);
  bool ReadSimple(Token token, Operand* operand);
  bool ReadAddress(Operand* operand);
  bool ReadList(char close, Operand::Kind kind, Operand* operand);
  bool ReadPair(Operand* operand);
  bool ReadAddend(Operand* operand);
  bool ReadElement(Operand* operand);  // "[3]" behind the name of an array
  bool FindRegister(std::string_view name, uint32_t* reg) const;
  const Variable* FindVariable(std::string_view name) const;
  bool ResolveNames();
  bool ResolveName(uint32_t scope, uint32_t line, Operand* operand);
  uint32_t AddRegister(Type type) {
    body_->registers.push_back(type);
    return static_cast<uint32_t>(body_->registers.size() - 1);
  }
  bool Fail(uint32_t line, std::string message) { return reader_.Fail(line, std::move(message)); }

  const ParsedModule& module_;
  const Function& function_;
  Body* body_;
  std::string* error_;
  Lexer lexer_;
  DeclarationReader reader_;
  std::vector<Scope> scopes_;
  uint32_t scope_ = 0;
  std::unordered_map<std::string_view, uint32_t> op_index_;
  int nesting_ = 0;
};

}  // namespace atp::ptx
