// SPDX-License-Identifier: Apache-2.0
// Cuts PTX text into tokens without copying. A Lexer is a cursor: copy it to come back to a place
// later (function bodies are skipped at load and read on first use). Never reads outside the text,
// whatever is in it. One thread per object.
#pragma once

#include <cstdint>
#include <string_view>

namespace atp::ptx {

enum class TokenKind : uint8_t { kEnd, kWord, kNumber, kString, kPunct, kBad };

// A word is an identifier, register, directive or whole opcode: "%tid.x", "$L__BB0_1", ".reg",
// "ld.global.f32".
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // of a string: without the quotes, escapes untouched
  uint32_t line = 1;

  bool Is(char punct) const { return kind == TokenKind::kPunct && text[0] == punct; }
  bool Is(std::string_view word) const { return kind == TokenKind::kWord && text == word; }
};

class Lexer {
 public:
  Lexer() = default;
  explicit Lexer(std::string_view text) : text_(text) {}

  Token Next();
  Token Peek() const {
    Lexer copy = *this;
    return copy.Next();
  }
  void SkipLine();            // to the start of the next line
  bool SkipPast(char punct);  // false at the end of the text
  uint32_t line() const { return line_; }

 private:
  void SkipBlanks();
  Token Make(TokenKind kind, size_t start, size_t end) const;

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
};

// Value of an integer literal (decimal, 0x, 0b, octal; trailing U). False when malformed or too
// large for 64 bits.
bool ParseInteger(std::string_view text, uint64_t* value);

}  // namespace atp::ptx
