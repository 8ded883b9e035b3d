// SPDX-License-Identifier: Apache-2.0
#include "ptx/lexer.h"

#include <array>

namespace atp::ptx {
namespace {

enum : uint8_t { kOther = 0, kBlank = 1, kWordStart = 2, kDigit = 4, kWordPart = 8 };

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 0; c < 256; ++c) {
    bool letter =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%';
    bool digit = c >= '0' && c <= '9';
    if (letter || c == '.') classes[c] |= kWordStart;
    if (digit) classes[c] |= kDigit;
    if (letter || digit || c == '.') classes[c] |= kWordPart;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v')
      classes[c] = kBlank;
  }
  return classes;
}
constexpr std::array<uint8_t, 256> kClass = MakeClasses();

uint8_t ClassOf(char c) { return kClass[static_cast<uint8_t>(c)]; }

}  // namespace

Token Lexer::Make(TokenKind kind, size_t start, size_t end) const {
  return Token{kind, text_.substr(start, end - start), line_};
}

void Lexer::SkipBlanks() {
  while (at_ < text_.size()) {
    char c = text_[at_];
    if (ClassOf(c) == kBlank) {
      line_ += c == '\n';
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) end = text_.size() - 2;
      for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
    } else if (c == '\0') {
      at_ = text_.size();  // PTX is handed over as a C string
    } else {
      return;
    }
  }
}

Token Lexer::Next() {
  SkipBlanks();
  if (at_ >= text_.size()) return Token{TokenKind::kEnd, {}, line_};
  size_t start = at_;
  uint8_t kind = ClassOf(text_[at_]);
  if (kind & kWordStart) {
    while (at_ < text_.size()) {
      if (ClassOf(text_[at_]) & kWordPart) {
        ++at_;
      } else if (text_.substr(at_, 2) == "::") {
        at_ += 2;
      } else {
        break;
      }
    }
    return Make(TokenKind::kWord, start, at_);
  }
  if (kind & kDigit) {
    // A sign belongs to a decimal exponent only: "1.5e-3", but not the "-" of "0x1e-3".
    bool decimal = true;
    while (at_ < text_.size()) {
      char c = text_[at_];
      bool is_sign = (c == '-' || c == '+') && decimal && at_ > start + 1 &&
                     (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!(ClassOf(c) & kWordPart) && !is_sign) break;
      if (at_ == start + 1 && text_[start] == '0' && !(ClassOf(c) & kDigit) && c != '.')
        decimal = false;
      ++at_;
    }
    return Make(TokenKind::kNumber, start, at_);
  }
  ++at_;
  if (text_[start] == '"') {
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') {
      at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    }
    if (at_ >= text_.size() || text_[at_] != '"') return Make(TokenKind::kBad, start, start + 1);
    ++at_;
    return Make(TokenKind::kString, start + 1, at_ - 1);
  }
  return Make(TokenKind::kPunct, start, at_);
}

void Lexer::SkipLine() {
  while (at_ < text_.size() && text_[at_] != '\n') ++at_;
}

bool Lexer::SkipPast(char punct) {
  for (Token token = Next(); token.kind != TokenKind::kEnd; token = Next()) {
    if (token.Is(punct)) return true;
  }
  return false;
}

bool ParseInteger(std::string_view text, uint64_t* value) {
  while (!text.empty() && text.back() == 'U') text.remove_suffix(1);
  if (text.empty()) return false;
  unsigned base = 10;
  if (text.size() > 1 && text[0] == '0') {
    base = 8;
    text.remove_prefix(1);
    if (text[0] == 'x' || text[0] == 'X') base = 16;
    if (text[0] == 'b' || text[0] == 'B') base = 2;
    if (base != 8) text.remove_prefix(1);
  }
  if (text.empty()) return false;
  uint64_t result = 0;
  for (char c : text) {
    unsigned digit = 99;
    if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A' + 10);
    if (digit >= base || result > (UINT64_MAX - digit) / base) return false;
    result = result * base + digit;
  }
  *value = result;
  return true;
}

}  // namespace atp::ptx
