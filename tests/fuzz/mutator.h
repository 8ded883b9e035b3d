// SPDX-License-Identifier: Apache-2.0
// Damages bytes of a corpus, the same for the same seed; and the options that fuzzers have.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <random>
#include <string>

namespace atp::fuzz {

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  size_t Below(size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string Damage(std::string text) {
    for (size_t times = 1 + Below(4); times > 0; --times) Once(&text);
    return text;
  }

 private:
  void Once(std::string* text) {
    static const char* const kWords[] = {"-1",
                                         "0",
                                         "18446744073709551615",
                                         "1e308",
                                         "-0.0",
                                         "nan",
                                         "null",
                                         "true",
                                         "\"\"",
                                         "[]",
                                         "{}",
                                         "[[[[[[[[",
                                         "\n",
                                         ",",
                                         "\xff\xfe",
                                         "9223372036854775808",
                                         "1e-320",
                                         "\"0\""};
    const size_t at = Below(text->size() + 1), length = 1 + Below(16);
    switch (Below(7)) {
      case 0:
        if (at < text->size()) (*text)[at] = static_cast<char>(random_());
        break;
      case 1:
        if (at < text->size()) (*text)[at] ^= static_cast<char>(1 << Below(8));
        break;
      case 2:
        text->erase(std::min(at, text->size()), length);
        break;
      case 3:
        text->insert(at, text->substr(Below(text->size()), length * 4));
        break;
      case 4:
        text->resize(at);
        break;
      case 5:
        text->insert(at, kWords[Below(std::size(kWords))]);
        break;
      default:
        ReplaceNumber(text, at, kWords[Below(std::size(kWords))]);
    }
  }

  static void ReplaceNumber(std::string* text, size_t from, const char* word) {
    const size_t begin = text->find_first_of("0123456789", from);
    if (begin == std::string::npos) return;
    const size_t end = text->find_first_not_of("0123456789.e+-", begin);
    text->replace(begin, end == std::string::npos ? end : end - begin, word);
  }

  std::mt19937_64 random_;
};

inline uint64_t Option(int count, char** arguments, const char* name, uint64_t otherwise) {
  for (int i = 1; i + 1 < count; ++i) {
    if (std::strcmp(arguments[i], name) == 0) return std::strtoull(arguments[i + 1], nullptr, 10);
  }
  return otherwise;
}

}  // namespace atp::fuzz
