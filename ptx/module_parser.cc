// SPDX-License-Identifier: Apache-2.0
// The module level: directives, declarations, function headers, and the first pass over bodies.
#include <unordered_set>

#include "ptx/parser.h"

namespace atp::ptx {
namespace {

class ModuleParser {
 public:
  ModuleParser(const OpcodeCheck& check, ParsedModule* module, std::string* error)
      : check_(check),
        module_(module),
        error_(error),
        lexer_(module->text),
        reader_(&lexer_, error) {}

  bool Run() {
    for (Token token = lexer_.Next(); token.kind != TokenKind::kEnd; token = lexer_.Next()) {
      if (!Directive(token)) return false;
    }
    if (module_->version_major == 0) return reader_.Fail(1, "no .version: this is not PTX");
    return true;
  }

 private:
  bool Directive(const Token& token);
  bool Version();
  bool Target();
  bool Declare(Space space, uint32_t line);
  bool ReadFunction(bool is_entry, uint32_t line);
  bool HeaderDirectives(Function* function);
  bool ReadThreeNumbers(uint32_t out[3]);
  bool ScanBody(Function* function);
  bool ScanDeclaration(const Token& directive, Function* function);
  bool ScanStatement(Token token, Function* function);
  bool SkipSection(uint32_t line);

  const OpcodeCheck& check_;
  ParsedModule* module_;
  std::string* error_;
  Lexer lexer_;
  DeclarationReader reader_;
  std::unordered_set<std::string_view> known_opcodes_;
  bool is_extern_ = false;
};

bool ModuleParser::Directive(const Token& token) {
  if (token.kind != TokenKind::kWord) {
    if (token.Is('@')) {  // "@@DWARF" lines of old compilers
      lexer_.SkipLine();
      return true;
    }
    if (token.Is(';')) return true;
    return reader_.Fail(token.line, "unexpected '" + std::string(token.text) + "'");
  }
  std::string_view word = token.text;
  if (word == ".version") return Version();
  if (word == ".target") return Target();
  if (word == ".address_size") {
    Token bits = lexer_.Next();
    return bits.text == "64" || reader_.Fail(bits.line, "only 64-bit addresses are supported");
  }
  if (word == ".extern" || word == ".visible" || word == ".weak" || word == ".common") {
    is_extern_ |= word == ".extern";
    return true;
  }
  if (word == ".global") return Declare(Space::kGlobal, token.line);
  if (word == ".const") return Declare(Space::kConst, token.line);
  if (word == ".shared") return Declare(Space::kShared, token.line);
  if (word == ".func") return ReadFunction(false, token.line);
  if (word == ".entry") return ReadFunction(true, token.line);
  if (word == ".file" || word == ".loc") {
    lexer_.SkipLine();
    return true;
  }
  if (word == ".section") return SkipSection(token.line);
  if (word == ".pragma")
    return lexer_.SkipPast(';') || reader_.Fail(token.line, "unterminated .pragma");
  return reader_.Fail(token.line, "unsupported directive " + std::string(word));
}

bool ModuleParser::Version() {
  Token number = lexer_.Next();
  size_t dot = number.text.find('.');
  uint64_t major = 0, minor = 0;
  if (number.kind != TokenKind::kNumber || dot == std::string_view::npos ||
      !ParseInteger(number.text.substr(0, dot), &major) ||
      !ParseInteger(number.text.substr(dot + 1), &minor) || major < 1 || major > 99) {
    return reader_.Fail(number.line, "bad .version");
  }
  module_->version_major = static_cast<int>(major);
  module_->version_minor = static_cast<int>(minor);
  return true;
}

bool ModuleParser::Target() {
  for (;;) {
    Token word = lexer_.Next();
    if (word.kind != TokenKind::kWord) return reader_.Fail(word.line, "bad .target");
    if (word.text.substr(0, 3) == "sm_") {
      std::string_view digits = word.text.substr(3);
      while (!digits.empty() && (digits.back() == 'a' || digits.back() == 'f'))
        digits.remove_suffix(1);
      uint64_t value = 0;
      if (!ParseInteger(digits, &value) || value > 999)
        return reader_.Fail(word.line, "bad .target");
      module_->target = static_cast<int>(value);
    }
    if (!lexer_.Peek().Is(',')) return true;
    lexer_.Next();
  }
}

bool ModuleParser::Declare(Space space, uint32_t line) {
  Variable model;
  model.space = space;
  model.is_extern = is_extern_;
  is_extern_ = false;
  if (!reader_.ReadType(&model)) return false;
  if (model.type == Type::kPred) return reader_.Fail(line, "a predicate cannot lie in memory");
  for (;;) {
    auto variable = std::make_unique<Variable>(model);
    if (!reader_.ReadName(variable.get())) return false;
    auto [entry, is_new] = module_->variable_by_name.emplace(variable->name, variable.get());
    if (!is_new && !variable->is_extern) {
      if (!entry->second->is_extern) {
        return reader_.Fail(line, "second definition of " + std::string(variable->name));
      }
      module_->variable_by_name.erase(entry);
      module_->variable_by_name.emplace(variable->name, variable.get());
    }
    module_->variables.push_back(std::move(variable));
    Token token = lexer_.Next();
    if (token.Is(';')) return true;
    if (!token.Is(',')) return reader_.Fail(token.line, "';' expected after a declaration");
  }
}

bool ModuleParser::ReadFunction(bool is_entry, uint32_t line) {
  auto function = std::make_unique<Function>();
  function->is_entry = is_entry;
  function->line = line;
  is_extern_ = false;
  while (lexer_.Peek().Is(std::string_view(".attribute"))) {
    if (!lexer_.SkipPast(')')) return reader_.Fail(line, "unterminated .attribute");
  }
  if (lexer_.Peek().Is('(')) {
    lexer_.Next();
    if (!reader_.ReadParameters(&function->returns)) return false;
  }
  Token name = lexer_.Next();
  if (name.kind != TokenKind::kWord || name.text[0] == '.') {
    return reader_.Fail(name.line, "function name expected");
  }
  function->name = name.text;
  if (lexer_.Peek().Is('(')) {
    lexer_.Next();
    if (!reader_.ReadParameters(&function->params)) return false;
  }
  if (!HeaderDirectives(function.get())) return false;
  Token token = lexer_.Next();
  if (token.Is('{')) {
    function->has_body = true;
    function->body = lexer_;
    if (!ScanBody(function.get())) return false;
  } else if (!token.Is(';')) {
    return reader_.Fail(token.line,
                        "'{' or ';' expected after the header of " + std::string(name.text));
  }
  uint32_t index = static_cast<uint32_t>(module_->functions.size());
  auto [entry, is_new] = module_->function_by_name.emplace(function->name, index);
  if (!is_new && function->has_body) {
    if (module_->functions[entry->second]->has_body) {
      return reader_.Fail(line, "second definition of " + std::string(function->name));
    }
    uint32_t declared = entry->second;
    // The declaration's text has the same name, but the map must not outlive what it points to.
    module_->functions[declared] = std::move(function);
    return true;
  }
  if (is_new) module_->functions.push_back(std::move(function));
  return true;
}

bool ModuleParser::ReadThreeNumbers(uint32_t out[3]) {
  out[0] = out[1] = out[2] = 1;
  for (int i = 0; i < 3; ++i) {
    Token number = lexer_.Next();
    uint64_t value = 0;
    if (number.kind != TokenKind::kNumber || !ParseInteger(number.text, &value) ||
        value > 1u << 20) {
      return reader_.Fail(number.line, "bad number in a directive");
    }
    out[i] = static_cast<uint32_t>(value);
    if (!lexer_.Peek().Is(',')) return true;
    lexer_.Next();
  }
  return true;
}

bool ModuleParser::HeaderDirectives(Function* function) {
  uint32_t numbers[3];
  for (Token token = lexer_.Peek(); token.kind == TokenKind::kWord && token.text[0] == '.';
       token = lexer_.Peek()) {
    lexer_.Next();
    std::string_view word = token.text;
    if (word == ".maxntid") {
      if (!ReadThreeNumbers(numbers)) return false;
      function->max_threads = numbers[0] * numbers[1] * numbers[2];
    } else if (word == ".reqntid") {
      if (!ReadThreeNumbers(function->required_block)) return false;
    } else if (word == ".minnctapersm" || word == ".maxnctapersm" || word == ".maxnreg") {
      if (!ReadThreeNumbers(numbers)) return false;
    } else if (word == ".pragma") {
      if (!lexer_.SkipPast(';')) return reader_.Fail(token.line, "unterminated .pragma");
    } else if (word == ".abi_preserve" || word == ".abi_preserve_control") {
      lexer_.Next();
    } else if (word != ".noreturn" && word != ".unique") {
      return reader_.Fail(token.line, "unsupported directive " + std::string(word) + " of kernel " +
                                          std::string(function->name));
    }
  }
  return true;
}

// Debug information: skipped whole.
bool ModuleParser::SkipSection(uint32_t line) {
  int depth = 0;
  for (Token token = lexer_.Next(); token.kind != TokenKind::kEnd; token = lexer_.Next()) {
    depth += token.Is('{');
    if (token.Is('}') && --depth <= 0) return true;
  }
  return reader_.Fail(line, "unterminated .section");
}

bool ModuleParser::ScanBody(Function* function) {
  int depth = 1;
  for (;;) {
    Token token = lexer_.Next();
    if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kBad) {
      return reader_.Fail(token.line, "unterminated body of " + std::string(function->name));
    }
    if (token.Is('{')) {
      ++depth;
    } else if (token.Is('}')) {
      if (--depth == 0) return true;
    } else if (token.Is('@')) {
      Token guard = lexer_.Next();
      if (guard.Is('!')) guard = lexer_.Next();
      if (guard.kind != TokenKind::kWord)
        return reader_.Fail(guard.line, "predicate expected after '@'");
    } else if (token.kind == TokenKind::kWord && token.text[0] == '.') {
      if (!ScanDeclaration(token, function)) return false;
    } else if (token.kind == TokenKind::kWord) {
      if (!ScanStatement(token, function)) return false;
    } else if (!token.Is(';')) {
      return reader_.Fail(token.line, "unexpected '" + std::string(token.text) + "' in " +
                                          std::string(function->name));
    }
  }
}

bool ModuleParser::ScanDeclaration(const Token& directive, Function* function) {
  std::string_view word = directive.text;
  if (word == ".loc" || word == ".file") {
    lexer_.SkipLine();
    return true;
  }
  if (word == ".local" || word == ".shared") {
    Variable variable;
    if (!reader_.ReadType(&variable) || !reader_.ReadName(&variable)) return false;
    uint64_t& total = word == ".local" ? function->local_bytes : function->shared_bytes;
    total =
        (total + variable.alignment - 1) / variable.alignment * variable.alignment + variable.bytes;
    if (word == ".shared")
      function->shared_alignment = std::max(function->shared_alignment, variable.alignment);
  }
  return lexer_.SkipPast(';') ||
         reader_.Fail(directive.line, "';' expected after " + std::string(word));
}

bool ModuleParser::ScanStatement(Token token, Function* function) {
  if (lexer_.Peek().Is(':')) {
    lexer_.Next();
    return true;
  }
  if (!known_opcodes_.contains(token.text)) {
    if (!check_(token.text)) {
      return reader_.Fail(token.line, "unsupported opcode " + std::string(token.text) + " in " +
                                          (function->is_entry ? "kernel " : "function ") +
                                          std::string(function->name));
    }
    known_opcodes_.insert(token.text);
  }
  ++function->instruction_count;
  for (Token operand = lexer_.Next(); !operand.Is(';'); operand = lexer_.Next()) {
    if (operand.kind == TokenKind::kEnd || operand.Is('@')) {
      return reader_.Fail(token.line, "';' expected after " + std::string(token.text));
    }
    if (operand.kind == TokenKind::kWord && operand.text[0] != '%' &&
        operand.text.substr(0, 3) != "$L_") {
      if (function->names.empty() || function->names.back() != operand.text)
        function->names.push_back(operand.text);
    }
  }
  return true;
}

}  // namespace

bool ParseModule(std::string_view text, const OpcodeCheck& check, ParsedModule* module,
                 std::string* error) {
  module->text = std::string(text);
  error->clear();
  return ModuleParser(check, module, error).Run();
}

}  // namespace atp::ptx
