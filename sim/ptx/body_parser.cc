// SPDX-License-Identifier: Apache-2.0
// One function body in full: scopes, registers, labels, operands.
#include <charconv>
#include <unordered_map>

#include "sim/ptx/parser.h"

namespace atp::sim::ptx {
namespace {

constexpr uint32_t kMaxRegisters = 1u << 20;

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

bool BodyParser::Run() {
  for (const auto* list : {&function_.params, &function_.returns}) {
    for (const Variable& variable : *list) {
      if (variable.space == Space::kReg) {
        scopes_[0].registers[variable.name] = AddRegister(variable.type);
      } else {
        scopes_[0].variables[variable.name] = &variable;
      }
    }
  }
  for (;;) {
    Token token = lexer_.Next();
    int32_t guard = -1;
    bool negated = false;
    if (token.kind == TokenKind::kEnd) return Fail(token.line, "unterminated body");
    if (token.Is('{')) {
      if (scopes_.size() > 1u << 20) return Fail(token.line, "too many scopes");
      scopes_.emplace_back();
      scopes_.back().parent = scope_;
      scope_ = static_cast<uint32_t>(scopes_.size() - 1);
      continue;
    }
    if (token.Is('}')) {
      if (scope_ == 0) break;
      scope_ = scopes_[scope_].parent;
      continue;
    }
    if (token.Is(';')) continue;
    if (token.Is('@')) {
      if (!Guard(&guard, &negated)) return false;
      token = lexer_.Next();
    }
    if (token.kind != TokenKind::kWord)
      return Fail(token.line, "unexpected '" + std::string(token.text) + "'");
    bool ok = token.text[0] == '.' ? Directive(token) : Statement(token, guard, negated);
    if (!ok) return false;
  }
  return ResolveNames();
}

bool BodyParser::Guard(int32_t* guard, bool* negated) {
  Token token = lexer_.Next();
  if (token.Is('!')) {
    *negated = true;
    token = lexer_.Next();
  }
  uint32_t reg = 0;
  if (token.kind != TokenKind::kWord || !FindRegister(token.text, &reg) ||
      body_->registers[reg] != Type::kPred) {
    return Fail(token.line, "predicate register expected after '@'");
  }
  *guard = static_cast<int32_t>(reg);
  return true;
}

bool BodyParser::Directive(const Token& token) {
  std::string_view word = token.text;
  if (word == ".loc" || word == ".file") {
    lexer_.SkipLine();
    return true;
  }
  if (word == ".reg") return DeclareRegisters();
  if (word == ".local") return DeclareVariables(Space::kLocal);
  if (word == ".shared") return DeclareVariables(Space::kShared);
  if (word == ".param") return DeclareVariables(Space::kParam);
  if (word == ".pragma") return lexer_.SkipPast(';');
  return Fail(token.line,
              "unsupported directive " + std::string(word) + " in " + std::string(function_.name));
}

bool BodyParser::DeclareRegisters() {
  Variable model;
  model.space = Space::kReg;
  if (!reader_.ReadType(&model)) return false;
  if (model.type == Type::kB128) return Fail(lexer_.line(), "128-bit registers are not supported");
  Scope& scope = scopes_[scope_];
  for (;;) {
    Token name = lexer_.Next();
    if (name.kind != TokenKind::kWord || name.text[0] == '.')
      return Fail(name.line, "register name expected");
    Token token = lexer_.Next();
    if (token.Is('<')) {
      uint64_t count = 0;
      Token number = lexer_.Next();
      if (number.kind != TokenKind::kNumber || !ParseInteger(number.text, &count) ||
          !lexer_.Next().Is('>') || count + body_->registers.size() > kMaxRegisters) {
        return Fail(number.line, "bad register count");
      }
      scope.ranges[name.text] = {static_cast<uint32_t>(body_->registers.size()),
                                 static_cast<uint32_t>(count)};
      body_->registers.resize(body_->registers.size() + count, model.type);
      token = lexer_.Next();
    } else {
      if (body_->registers.size() >= kMaxRegisters) return Fail(name.line, "too many registers");
      scope.registers[name.text] = AddRegister(model.type);
    }
    if (token.Is(';')) return true;
    if (!token.Is(',')) return Fail(token.line, "';' expected after .reg");
  }
}

bool BodyParser::DeclareVariables(Space space) {
  Variable model;
  model.space = space;
  if (!reader_.ReadType(&model)) return false;
  if (model.type == Type::kPred) return Fail(lexer_.line(), "a predicate cannot lie in memory");
  for (;;) {
    auto variable = std::make_unique<Variable>(model);
    if (!reader_.ReadName(variable.get())) return false;
    scopes_[scope_].variables[variable->name] = variable.get();
    body_->locals.push_back(std::move(variable));
    Token token = lexer_.Next();
    if (token.Is(';')) return true;
    if (!token.Is(',')) return Fail(token.line, "';' expected after a declaration");
  }
}

// "name : .callprototype (returns) _ (params);"
bool BodyParser::DeclarePrototype(std::string_view name) {
  Prototype prototype;
  prototype.name = name;
  Token token = lexer_.Next();
  if (token.Is('(')) {
    if (!reader_.ReadParameters(&prototype.returns)) return false;
    token = lexer_.Next();
  }
  if (token.kind != TokenKind::kWord) return Fail(token.line, "'_' expected in a prototype");
  if (lexer_.Peek().Is('(')) {
    lexer_.Next();
    if (!reader_.ReadParameters(&prototype.params)) return false;
  }
  body_->prototypes.push_back(std::move(prototype));
  return lexer_.SkipPast(';') || Fail(token.line, "';' expected after a prototype");
}

// "name : .branchtargets L1, L2;" is kept as operands of a list; labels are resolved by
// ResolveNames.
bool BodyParser::DeclareTargets(std::string_view name) {
  std::vector<Operand> list;
  for (;;) {
    Token label = lexer_.Next();
    if (label.kind != TokenKind::kWord) return Fail(label.line, "label expected");
    Operand operand;
    operand.kind = Operand::Kind::kName;
    operand.name = label.text;
    list.push_back(operand);
    Token token = lexer_.Next();
    if (token.Is(';')) break;
    if (!token.Is(',')) return Fail(token.line, "',' expected");
  }
  Prototype prototype;
  prototype.name = name;
  for (Operand& operand : list) {
    prototype.targets.push_back(static_cast<uint32_t>(body_->operands.size()));
    operand.count = scope_;
    body_->operands.push_back(operand);
  }
  body_->prototypes.push_back(std::move(prototype));
  return true;
}

bool BodyParser::Statement(Token token, int32_t guard, bool negated) {
  if (lexer_.Peek().Is(':')) {
    lexer_.Next();
    Token next = lexer_.Peek();
    if (next.Is(std::string_view(".callprototype"))) {
      lexer_.Next();
      return DeclarePrototype(token.text);
    }
    if (next.Is(std::string_view(".branchtargets"))) {
      lexer_.Next();
      return DeclareTargets(token.text);
    }
    if (next.Is(std::string_view(".calltargets"))) {
      body_->prototypes.emplace_back().name = token.text;
      return lexer_.SkipPast(';');
    }
    scopes_[scope_].labels[token.text] = static_cast<uint32_t>(body_->instructions.size());
    return true;
  }
  Instruction instruction;
  auto [found, is_new] = op_index_.emplace(token.text, static_cast<uint32_t>(body_->ops.size()));
  if (is_new) {
    body_->ops.emplace_back();
    if (!ParseOpcode(token.text, &body_->ops.back())) {
      return Fail(token.line, "unsupported opcode " + std::string(token.text));
    }
  }
  instruction.op = found->second;
  instruction.line = token.line;
  instruction.scope = scope_;
  instruction.guard = guard;
  instruction.guard_negated = negated;
  std::vector<Operand> list;
  if (lexer_.Peek().Is(';')) {
    lexer_.Next();
  } else {
    for (;;) {
      Operand operand;
      if (!ReadOperand(&operand)) return false;
      list.push_back(operand);
      Token separator = lexer_.Next();
      if (separator.Is(';')) break;
      if (!separator.Is(',')) {
        return Fail(separator.line, "',' or ';' expected in " + std::string(token.text));
      }
    }
  }
  instruction.first = static_cast<uint32_t>(body_->operands.size());
  instruction.count = static_cast<uint32_t>(list.size());
  body_->operands.insert(body_->operands.end(), list.begin(), list.end());
  body_->instructions.push_back(instruction);
  return true;
}

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
  operand->first = static_cast<uint32_t>(body_->operands.size());
  operand->count = 1;
  body_->operands.push_back(base);
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

}  // namespace

bool ParseBody(const ParsedModule& module, const Function& function, Body* body,
               std::string* error) {
  error->clear();
  return BodyParser(module, function, body, error).Run();
}

}  // namespace atp::sim::ptx
