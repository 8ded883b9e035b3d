// SPDX-License-Identifier: Apache-2.0
// Operands of a function body, and what their names mean.
#include <charconv>

#include "ptx/body_parser.h"

namespace atp::ptx {

bool BodyParser::ReadOperand(Operand* operand) {
  Token token = lexer_.Next();
  if (token.Is('[')) return ReadAddress(operand);
  if (token.Is('{')) return ReadList('}', Operand::Kind::kVector, operand);
  if (token.Is('(')) return ReadList(')', Operand::Kind::kList, operand);
  if (!ReadSimple(token, operand)) return false;
  if (lexer_.Peek().Is('|')) return ReadPair(operand);
  return true;
}

bool BodyParser::ReadPair(Operand* operand) {
  lexer_.Next();
  Operand second;
  if (!ReadSimple(lexer_.Next(), &second)) return false;
  Operand first = *operand;
  *operand = Operand{};
  operand->kind = Operand::Kind::kPair;
  operand->first = static_cast<uint32_t>(body_->operands.size());
  operand->count = 2;
  body_->operands.push_back(first);
  body_->operands.push_back(second);
  return true;
}

bool BodyParser::ReadAddend(Operand* operand) {
  while (lexer_.Peek().Is('+') || lexer_.Peek().Is('-')) {
    bool minus = lexer_.Next().Is('-');
    if (lexer_.Peek().Is('-')) {
      lexer_.Next();
      minus = !minus;
    }
    Token number = lexer_.Next();
    uint64_t value = 0;
    if (number.kind != TokenKind::kNumber || !ParseInteger(number.text, &value)) {
      return Fail(number.line, "integer expected in an address");
    }
    operand->addend =
        static_cast<int64_t>(static_cast<uint64_t>(operand->addend) + (minus ? 0 - value : value));
  }
  return true;
}

bool BodyParser::ReadElement(Operand* operand) {
  lexer_.Next();
  Token number = lexer_.Next();
  uint64_t element = 0;
  if (number.kind != TokenKind::kNumber || !ParseInteger(number.text, &element)) {
    return Fail(number.line, "constant index expected in brackets behind a variable");
  }
  operand->addend = static_cast<int64_t>(element * TypeBytes(operand->variable->type));
  Token close = lexer_.Next();
  return close.Is(']') || Fail(close.line, "']' expected");
}

bool BodyParser::ReadSimple(Token token, Operand* operand) {
  if (token.Is('!')) {
    operand->negated = true;
    token = lexer_.Next();
  }
  bool minus = token.Is('-');
  if (minus) token = lexer_.Next();
  if (token.kind == TokenKind::kNumber) {
    if (!ParseLiteral(token.text, operand)) {
      return Fail(token.line, "bad number '" + std::string(token.text) + "'");
    }
    if (minus) {
      if (operand->kind == Operand::Kind::kInteger) operand->bits = 0 - operand->bits;
      if (operand->kind == Operand::Kind::kFloat32) operand->bits ^= uint64_t{1} << 31;
      if (operand->kind == Operand::Kind::kFloat64) operand->bits ^= uint64_t{1} << 63;
    }
    return true;
  }
  if (minus || token.kind != TokenKind::kWord) {
    return Fail(token.line, "operand expected, found '" + std::string(token.text) + "'");
  }
  if (token.text == "_") return true;
  if (FindRegister(token.text, &operand->index)) {
    operand->kind = Operand::Kind::kRegister;
    return true;
  }
  if (token.text == "WARP_SZ") {
    operand->kind = Operand::Kind::kInteger;
    operand->bits = 32;
    return true;
  }
  operand->name = token.text;
  if (token.text[0] == '%') {
    operand->kind = Operand::Kind::kSpecial;
    return true;
  }
  if ((operand->variable = FindVariable(token.text)) != nullptr) {
    operand->kind = Operand::Kind::kVariable;
    if (lexer_.Peek().Is('[') && !ReadElement(operand)) return false;
    return ReadAddend(operand);
  }
  operand->kind = Operand::Kind::kName;
  return true;
}

bool BodyParser::ReadAddress(Operand* operand) {
  Operand base;
  if (!ReadSimple(lexer_.Next(), &base)) return false;
  if (base.kind == Operand::Kind::kName)
    return Fail(lexer_.line(), "unknown variable " + std::string(base.name));
  if (base.kind != Operand::Kind::kRegister && base.kind != Operand::Kind::kVariable &&
      base.kind != Operand::Kind::kInteger) {
    return Fail(lexer_.line(), "bad address");
  }
  operand->kind = Operand::Kind::kAddress;
  if (!ReadAddend(operand)) return false;
  operand->addend = static_cast<int64_t>(static_cast<uint64_t>(operand->addend) +
                                         static_cast<uint64_t>(base.addend));
  base.addend = 0;
  Operand coordinates;
  const bool has_coordinates = lexer_.Peek().Is(',');
  if (has_coordinates) {
    lexer_.Next();
    if (nesting_ > 0) return Fail(lexer_.line(), "lists nested too deeply");
    if (!ReadOperand(&coordinates)) return false;
  }
  operand->first = static_cast<uint32_t>(body_->operands.size());
  operand->count = has_coordinates ? 2 : 1;
  body_->operands.push_back(base);
  if (has_coordinates) body_->operands.push_back(coordinates);
  Token close = lexer_.Next();
  return close.Is(']') || Fail(close.line, "']' expected");
}

bool BodyParser::ReadList(char close, Operand::Kind kind, Operand* operand) {
  if (nesting_ > 2) return Fail(lexer_.line(), "lists nested too deeply");
  ++nesting_;
  std::vector<Operand> list;
  bool empty = lexer_.Peek().Is(close);
  if (empty) lexer_.Next();
  while (!empty) {
    Operand element;
    if (!ReadOperand(&element)) return false;
    list.push_back(element);
    Token token = lexer_.Next();
    if (token.Is(close)) break;
    if (!token.Is(',')) return Fail(token.line, "',' expected in a list");
  }
  --nesting_;
  operand->kind = kind;
  operand->first = static_cast<uint32_t>(body_->operands.size());
  operand->count = static_cast<uint32_t>(list.size());
  body_->operands.insert(body_->operands.end(), list.begin(), list.end());
  return true;
}

bool BodyParser::FindRegister(std::string_view name, uint32_t* reg) const {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  std::string_view stem = name.substr(0, digits);
  uint32_t number = 0;
  bool has_number =
      digits < name.size() && (name[digits] != '0' || digits + 1 == name.size()) &&
      std::from_chars(name.data() + digits, name.data() + name.size(), number).ec == std::errc();
  for (uint32_t scope = scope_;; scope = scopes_[scope].parent) {
    const Scope& current = scopes_[scope];
    if (has_number) {
      auto range = current.ranges.find(stem);
      if (range != current.ranges.end() && number < range->second.count) {
        *reg = range->second.first + number;
        return true;
      }
    }
    if (auto single = current.registers.find(name); single != current.registers.end()) {
      *reg = single->second;
      return true;
    }
    if (scope == 0) return false;
  }
}

const Variable* BodyParser::FindVariable(std::string_view name) const {
  for (uint32_t scope = scope_;; scope = scopes_[scope].parent) {
    if (auto found = scopes_[scope].variables.find(name); found != scopes_[scope].variables.end()) {
      return found->second;
    }
    if (scope == 0) break;
  }
  auto found = module_.variable_by_name.find(name);
  return found == module_.variable_by_name.end() ? nullptr : found->second;
}

bool BodyParser::ResolveName(uint32_t scope, uint32_t line, Operand* operand) {
  for (;; scope = scopes_[scope].parent) {
    auto label = scopes_[scope].labels.find(operand->name);
    if (label != scopes_[scope].labels.end()) {
      operand->kind = Operand::Kind::kLabel;
      operand->index = label->second;
      return true;
    }
    if (scope == 0) break;
  }
  if (auto found = module_.function_by_name.find(operand->name);
      found != module_.function_by_name.end()) {
    operand->kind = Operand::Kind::kFunction;
    operand->index = found->second;
    return true;
  }
  for (uint32_t i = 0; i < body_->prototypes.size(); ++i) {
    if (body_->prototypes[i].name == operand->name) {
      operand->kind = Operand::Kind::kLabel;
      operand->index = i;
      return true;
    }
  }
  return Fail(line,
              "unknown name " + std::string(operand->name) + " in " + std::string(function_.name));
}

bool BodyParser::ResolveNames() {
  for (const Instruction& instruction : body_->instructions) {
    for (uint32_t i = 0; i < instruction.count; ++i) {
      Operand& operand = body_->operands[instruction.first + i];
      if (operand.kind == Operand::Kind::kName &&
          !ResolveName(instruction.scope, instruction.line, &operand)) {
        return false;
      }
      if (operand.kind != Operand::Kind::kVector && operand.kind != Operand::Kind::kList &&
          operand.kind != Operand::Kind::kPair) {
        continue;
      }
      for (uint32_t k = 0; k < operand.count; ++k) {
        Operand& element = body_->operands[operand.first + k];
        if (element.kind == Operand::Kind::kName &&
            !ResolveName(instruction.scope, instruction.line, &element)) {
          return false;
        }
      }
    }
  }
  for (Prototype& prototype : body_->prototypes) {
    for (uint32_t& target : prototype.targets) {
      Operand& operand = body_->operands[target];
      if (!ResolveName(operand.count, 0, &operand)) return false;
      target = operand.index;
    }
  }
  return true;
}

}  // namespace atp::ptx
