// SPDX-License-Identifier: Apache-2.0
// Declarations of variables and parameters, with their initialisers.
#include <locale.h>
#include <stdlib.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <string>

#include "ptx/parser.h"

namespace atp::ptx {
namespace {

constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 40;
constexpr uint64_t kMaxInitializedBytes = uint64_t{1} << 31;

// g++ 10, which the packages for old systems are made with, has no std::bit_cast.
template <typename To, typename From>
To BitCast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  memcpy(&to, &from, sizeof to);
  return to;
}

// Nor has it std::from_chars for this. The program's locale has no say.
bool ParseDecimal(std::string_view text, double* value) {
  const bool number = text.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
  if (text.empty() || text[0] == '+' || !number) return false;
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  const std::string copy(text);
  char* end = nullptr;
  *value = strtod_l(copy.c_str(), &end, plain);
  return end == copy.c_str() + copy.size() && std::isfinite(*value);
}

bool ParseHexBits(std::string_view digits, size_t count, uint64_t* bits) {
  if (digits.size() != count) return false;
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), *bits, 16);
  return result.ec == std::errc() && result.ptr == digits.data() + digits.size();
}

// Converts a literal to the bytes of one element of `type`.
uint64_t ElementBits(const Operand& literal, Type type) {
  bool wants_double = type == Type::kF64;
  bool wants_single = type == Type::kF32;
  switch (literal.kind) {
    case Operand::Kind::kFloat32:
      if (wants_double) return BitCast<uint64_t>(double{BitCast<float>(uint32_t(literal.bits))});
      return literal.bits;
    case Operand::Kind::kFloat64:
      if (wants_single) return BitCast<uint32_t>(float(BitCast<double>(literal.bits)));
      return literal.bits;
    default:
      if (wants_double) return BitCast<uint64_t>(double(int64_t(literal.bits)));
      if (wants_single) return BitCast<uint32_t>(float(int64_t(literal.bits)));
      return literal.bits;
  }
}

}  // namespace

bool ParseLiteral(std::string_view text, Operand* operand) {
  if (text.size() > 2 && text[0] == '0') {
    char kind = text[1];
    if (kind == 'f' || kind == 'F') {
      operand->kind = Operand::Kind::kFloat32;
      return ParseHexBits(text.substr(2), 8, &operand->bits);
    }
    if (kind == 'd' || kind == 'D') {
      operand->kind = Operand::Kind::kFloat64;
      return ParseHexBits(text.substr(2), 16, &operand->bits);
    }
  }
  if (ParseInteger(text, &operand->bits)) {
    operand->kind = Operand::Kind::kInteger;
    return true;
  }
  double value = 0;
  if (!ParseDecimal(text, &value)) return false;
  operand->kind = Operand::Kind::kFloat64;
  operand->bits = BitCast<uint64_t>(value);
  return true;
}

bool DeclarationReader::Fail(uint32_t line, std::string message) {
  if (error_->empty()) *error_ = "line " + std::to_string(line) + ": " + std::move(message);
  return false;
}

bool DeclarationReader::ReadType(Variable* variable) {
  vector_ = 1;
  for (;;) {
    Token token = lexer_->Peek();
    if (token.kind != TokenKind::kWord || token.text[0] != '.') break;
    lexer_->Next();
    std::string_view word = token.text.substr(1);
    if (Type type = TypeFromName(word); type != Type::kNone) {
      variable->type = type;
    } else if (word == "align") {
      uint64_t value = 0;
      Token number = lexer_->Next();
      if (number.kind != TokenKind::kNumber || !ParseInteger(number.text, &value) || value == 0 ||
          value > 4096 || (value & (value - 1)) != 0) {
        return Fail(number.line, "bad .align");
      }
      variable->alignment = static_cast<uint32_t>(value);
    } else if (word == "v2" || word == "v4") {
      vector_ = word[1] - '0';
    } else if (word == "ptr") {
      variable->is_pointer = true;
    } else if (word == "attribute") {
      if (!lexer_->Next().Is('(')) return Fail(token.line, "'(' expected after .attribute");
      Token attribute = lexer_->Next();
      variable->is_managed |= attribute.Is(std::string_view(".managed"));
      if (!lexer_->SkipPast(')')) return Fail(token.line, "unterminated .attribute");
    } else if (word != "global" && word != "const" && word != "shared" && word != "local" &&
               word != "generic" && word != "space") {
      return Fail(token.line, "unknown qualifier " + std::string(token.text) + " in a declaration");
    }
  }
  if (TypeBytes(variable->type) == 0 && variable->type != Type::kPred) {
    return Fail(lexer_->line(), "unsupported type in a declaration");
  }
  return true;
}

bool DeclarationReader::ReadName(Variable* variable) {
  Token name = lexer_->Next();
  if (name.kind != TokenKind::kWord || name.text[0] == '.') {
    return Fail(name.line,
                "name expected in a declaration, found '" + std::string(name.text) + "'");
  }
  variable->name = name.text;
  variable->line = name.line;
  uint64_t element =
      static_cast<uint64_t>(TypeBytes(variable->type)) * static_cast<uint64_t>(vector_);
  variable->bytes = element;
  uint64_t count = 1;
  bool unsized = false;
  while (lexer_->Peek().Is('[')) {
    lexer_->Next();
    variable->is_array = true;
    Token size = lexer_->Next();
    if (size.Is(']')) {
      unsized = true;
      continue;
    }
    uint64_t value = 0;
    if (size.kind != TokenKind::kNumber || !ParseInteger(size.text, &value) ||
        value > kMaxVariableBytes || !lexer_->Next().Is(']')) {
      return Fail(size.line, "bad array size of " + std::string(name.text));
    }
    if (value != 0 && count > kMaxVariableBytes / value) return Fail(size.line, "array too large");
    count *= value;
  }
  if (element != 0 && count > kMaxVariableBytes / element)
    return Fail(name.line, "array too large");
  variable->bytes = unsized ? 0 : element * count;
  if (variable->alignment < element && element <= 16)
    variable->alignment = static_cast<uint32_t>(element);
  if (lexer_->Peek().Is('=')) {
    lexer_->Next();
    return ReadInitializer(variable);
  }
  return true;
}

bool DeclarationReader::ReadInitializer(Variable* variable) {
  if (variable->bytes > kMaxInitializedBytes)
    return Fail(variable->line, "initialised array too large");
  int depth = 0;
  uint64_t offset = 0;
  for (;;) {
    Token token = lexer_->Peek();
    if (token.kind == TokenKind::kEnd) return Fail(token.line, "unterminated initialiser");
    if (token.Is('{')) {
      lexer_->Next();
      ++depth;
      continue;
    }
    if (token.Is('}') || token.Is(',')) {
      if (depth == 0) return Fail(token.line, "bad initialiser of " + std::string(variable->name));
      lexer_->Next();
      depth -= token.Is('}');
      if (depth == 0) break;
      continue;
    }
    if (!ReadInitialValue(variable, &offset)) return false;
    if (depth == 0) break;
  }
  if (variable->bytes == 0 && variable->is_array) variable->bytes = offset;
  if (offset > variable->bytes) return Fail(variable->line, "too many initial values");
  variable->initial.resize(variable->bytes);
  return true;
}

bool DeclarationReader::ReadInitialValue(Variable* variable, uint64_t* offset) {
  int element = TypeBytes(variable->type);
  if (*offset + static_cast<uint64_t>(element) > kMaxInitializedBytes) {
    return Fail(lexer_->line(), "initialiser too large");
  }
  variable->initial.resize(
      std::max<size_t>(variable->initial.size(), *offset + static_cast<size_t>(element)));
  Token token = lexer_->Next();
  if (token.kind == TokenKind::kWord) {
    if (!ReadInitialSymbol(token, variable, *offset, element)) return false;
    *offset += static_cast<uint64_t>(element);
    return true;
  }
  bool negative = token.Is('-');
  if (negative || token.Is('+')) token = lexer_->Next();
  Operand literal;
  if (token.kind != TokenKind::kNumber || !ParseLiteral(token.text, &literal)) {
    return Fail(token.line, "bad initial value '" + std::string(token.text) + "'");
  }
  if (lexer_->Peek().Is('(')) {
    return Fail(token.line, "masked addresses in initialisers are not supported");
  }
  uint64_t bits = ElementBits(literal, variable->type);
  if (negative) {
    if (variable->type == Type::kF32) {
      bits ^= uint64_t{1} << 31;
    } else if (variable->type == Type::kF64) {
      bits ^= uint64_t{1} << 63;
    } else {
      bits = 0 - bits;
    }
  }
  std::memcpy(variable->initial.data() + *offset, &bits, static_cast<size_t>(element));
  *offset += static_cast<uint64_t>(element);
  return true;
}

// "name", "name+4", "generic(name)+4".
bool DeclarationReader::ReadInitialSymbol(Token token, Variable* variable, uint64_t offset,
                                          int element) {
  bool generic = token.text == "generic";
  if (generic) {
    if (!lexer_->Next().Is('(')) return Fail(token.line, "'(' expected after generic");
    token = lexer_->Next();
    if (token.kind != TokenKind::kWord || !lexer_->Next().Is(')')) {
      return Fail(token.line, "bad generic() in an initialiser");
    }
  }
  if (element != 8 && element != 4)
    return Fail(token.line, "an address needs an element of 8 bytes");
  InitialAddress address{offset, token.text, 0, static_cast<uint8_t>(element)};
  Token sign = lexer_->Peek();
  if (sign.Is('+') || sign.Is('-')) {
    lexer_->Next();
    uint64_t value = 0;
    Token number = lexer_->Next();
    if (number.kind != TokenKind::kNumber || !ParseInteger(number.text, &value)) {
      return Fail(number.line, "bad offset in an initialiser");
    }
    address.addend = static_cast<int64_t>(sign.Is('-') ? 0 - value : value);
  }
  variable->addresses.push_back(address);
  return true;
}

bool DeclarationReader::ReadParameters(std::vector<Variable>* list) {
  if (lexer_->Peek().Is(')')) {
    lexer_->Next();
    return true;
  }
  for (;;) {
    Variable parameter;
    parameter.space = Space::kParam;
    Token token = lexer_->Next();
    if (token.Is(std::string_view(".reg"))) {
      parameter.space = Space::kReg;
    } else if (!token.Is(std::string_view(".param"))) {
      return Fail(token.line, ".param expected in a parameter list");
    }
    if (!ReadType(&parameter) || !ReadName(&parameter)) return false;
    list->push_back(std::move(parameter));
    token = lexer_->Next();
    if (token.Is(')')) return true;
    if (!token.Is(',')) return Fail(token.line, "',' or ')' expected in a parameter list");
  }
}

}  // namespace atp::ptx
