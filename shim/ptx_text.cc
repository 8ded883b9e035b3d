// SPDX-License-Identifier: Apache-2.0
#include "shim/ptx_text.h"

#include <algorithm>
#include <cctype>

namespace atp::shim {
namespace {

bool IsNameStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}
bool IsNamePart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%';
}

std::string_view Trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

// The next word that ends at a blank or at one of `ends`.
std::string_view Word(std::string_view* s, std::string_view ends = "") {
  *s = Trim(*s);
  size_t n = 0;
  while (n < s->size() && !std::isspace(static_cast<unsigned char>((*s)[n])) &&
         ends.find((*s)[n]) == std::string_view::npos) {
    ++n;
  }
  const std::string_view word = s->substr(0, n);
  s->remove_prefix(n);
  return word;
}

std::vector<std::string_view> SplitTop(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i == s.size() || (s[i] == ',' && depth == 0)) {
      const std::string_view part = Trim(s.substr(begin, i - begin));
      if (!part.empty()) parts.push_back(part);
      begin = i + 1;
    } else {
      depth += s[i] == '(' || s[i] == '[' || s[i] == '{';
      depth -= s[i] == ')' || s[i] == ']' || s[i] == '}';
    }
  }
  return parts;
}

uint32_t Number(std::string_view s) {
  uint32_t value = 0;
  for (char c : s) {
    if (!std::isdigit(static_cast<unsigned char>(c))) break;
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  return value;
}

uint32_t TypeBytes(std::string_view type) {
  const size_t digits = type.find_first_of("0123456789");
  return digits == std::string_view::npos ? 0 : Number(type.substr(digits)) / 8;
}

// ".param .align 8 .b8 name[48]" or ".param .u64 .ptr .global .align 4 name"
PtxParameter ReadParameter(std::string_view declaration, uint32_t* end) {
  PtxParameter parameter;
  uint32_t align = 0, element = 0;
  bool of_pointee = false;
  while (!(declaration = Trim(declaration)).empty()) {
    const std::string_view word = Word(&declaration);
    if (word == ".ptr") {
      of_pointee = true;
    } else if (word == ".align") {
      const uint32_t value = Number(Word(&declaration));
      if (!of_pointee) align = value;
    } else if (word[0] != '.') {
      const size_t bracket = word.find('[');
      parameter.name = word.substr(0, bracket);
      parameter.bytes = element;
      if (bracket != std::string_view::npos) parameter.bytes *= Number(word.substr(bracket + 1));
    } else if (element == 0) {
      element = TypeBytes(word);
    }
  }
  align = std::max({align, element, 1u});
  parameter.offset = (*end + align - 1) / align * align;
  *end = parameter.offset + parameter.bytes;
  return parameter;
}

PtxInstruction ReadInstruction(std::string_view statement) {
  PtxInstruction instruction;
  if (statement[0] == '@') Word(&statement);
  instruction.opcode = Word(&statement);
  instruction.operands = SplitTop(statement);
  return instruction;
}

// "$L__BB0_2" before its colon; "cp.async.bulk.shared" before one of its own is none.
bool IsLabel(std::string_view s) {
  return !s.empty() && IsNameStart(s[0]) && std::all_of(s.begin(), s.end(), IsNamePart);
}

// Statements between the braces that open at `at`; returns the position behind the closing one.
size_t ReadBody(std::string_view text, size_t at, std::vector<PtxInstruction>* body) {
  int depth = 0;
  size_t begin = at;
  bool in_operands = false;  // "{%f1, %f2}" in an instruction is no block
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ';') {
      const std::string_view statement = Trim(text.substr(begin, at - begin));
      if (!statement.empty() && statement[0] != '.') body->push_back(ReadInstruction(statement));
      begin = at + 1;
      in_operands = false;
    } else if (c == ':' && IsLabel(Trim(text.substr(begin, at - begin)))) {
      begin = at + 1;
      in_operands = false;
    } else if (c == '{' && !in_operands) {
      ++depth;
      begin = at + 1;
    } else if (c == '}' && !in_operands) {
      begin = at + 1;
      if (--depth == 0) return at + 1;
    } else if (!std::isspace(static_cast<unsigned char>(c))) {
      in_operands = true;
    }
  }
  return at;
}

}  // namespace

std::string WithoutComments(std::string_view ptx) {
  std::string text(ptx);
  const auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < std::min(to, text.size()); ++i) {
      if (text[i] != '\n') text[i] = ' ';
    }
  };
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '/' && text[i + 1] == '/') {
      blank(i, text.find('\n', i));
    } else if (text[i] == '/' && text[i + 1] == '*') {
      const size_t end = text.find("*/", i + 2);
      blank(i, end == std::string::npos ? text.size() : end + 2);
    } else if (text[i] == '.' &&
               (text.compare(i, 5, ".loc ") == 0 || text.compare(i, 5, ".loc\t") == 0 ||
                text.compare(i, 6, ".file\t") == 0 || text.compare(i, 6, ".file ") == 0)) {
      blank(i, text.find('\n', i));
    }
  }
  return text;
}

std::vector<PtxFunction> ReadPtxFunctions(std::string_view text) {
  std::vector<PtxFunction> functions;
  size_t at = 0;
  while (true) {
    const size_t entry = text.find(".entry", at), func = text.find(".func", at);
    at = std::min(entry, func);
    if (at == std::string_view::npos) return functions;
    PtxFunction function;
    function.is_kernel = entry < func;
    std::string_view rest = text.substr(at + (function.is_kernel ? 6 : 5));
    rest = Trim(rest);
    if (!rest.empty() && rest[0] == '(') {  // the value that a .func returns
      const size_t close = rest.find(')');
      if (close == std::string_view::npos) return functions;
      rest.remove_prefix(close + 1);
    }
    function.name = Word(&rest, "(;{");
    rest = Trim(rest);
    if (!rest.empty() && rest[0] == '(') {
      const size_t close = rest.find(')');
      if (close == std::string_view::npos) return functions;
      uint32_t end = 0;
      if (function.is_kernel) {
        for (std::string_view p : SplitTop(rest.substr(1, close - 1))) {
          function.parameters.push_back(ReadParameter(p, &end));
        }
      }
      rest.remove_prefix(close + 1);
    }
    // Directives such as .maxntid stand before the body; a declaration ends with ';'.
    const size_t open = rest.find_first_of("{;");
    at = static_cast<size_t>(rest.data() - text.data());
    if (open == std::string_view::npos) return functions;
    at = rest[open] == '{' ? ReadBody(text, at + open, &function.body) : at + open + 1;
    functions.push_back(std::move(function));
  }
}

std::vector<std::string_view> NamesIn(std::string_view operand) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < operand.size();) {
    if (IsNameStart(operand[i])) {
      size_t end = i + 1;
      while (end < operand.size() && IsNamePart(operand[end])) ++end;
      names.push_back(operand.substr(i, end - i));
      i = end;
    } else if (std::isdigit(static_cast<unsigned char>(operand[i]))) {
      while (i < operand.size() && IsNamePart(operand[i])) ++i;  // 0f3F800000 is no name
    } else {
      ++i;
    }
    if (i < operand.size() && operand[i] == '.') {  // %tid.x
      while (i < operand.size() && (operand[i] == '.' || IsNamePart(operand[i]))) ++i;
    }
  }
  return names;
}

bool HasPart(std::string_view opcode, std::string_view part) {
  for (size_t at = 0; (at = opcode.find(part, at)) != std::string_view::npos; ++at) {
    const bool begins = at == 0 || opcode[at - 1] == '.';
    const size_t end = at + part.size();
    if (begins && (end == opcode.size() || opcode[end] == '.')) return true;
  }
  return false;
}

}  // namespace atp::shim
