// SPDX-License-Identifier: Apache-2.0
// One function body in full: scopes, registers, labels, statements.
#include "ptx/body_parser.h"

namespace atp::ptx {
namespace {

constexpr uint32_t kMaxRegisters = 1u << 20;

}  // namespace

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

bool ParseBody(const ParsedModule& module, const Function& function, Body* body,
               std::string* error) {
  error->clear();
  return BodyParser(module, function, body, error).Run();
}

}  // namespace atp::ptx
