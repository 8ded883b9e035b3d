// SPDX-License-Identifier: Apache-2.0
// Training text: bytes of a file, cut into batches at places that depend on seed and iteration
// only.
#pragma once

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "examples/support/options.h"
#include "examples/support/random.h"

namespace example {

// tiny.txt in the folder of the program.
inline std::string DefaultText() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string program(path, length > 0 ? length : 0);
  return program.substr(0, program.rfind('/') + 1) + "tiny.txt";
}

inline std::vector<unsigned char> ReadText(const std::string& path, int sequence) {
  std::ifstream in(path, std::ios::binary);
  if (!in) Options::Refuse("cannot read the text " + path + " (--text names another one)");
  std::vector<unsigned char> text((std::istreambuf_iterator<char>(in)), {});
  if (text.size() < size_t(sequence) + 2) {
    Options::Refuse(path + " has " + std::to_string(text.size()) +
                    " bytes: too few for --sequence " + std::to_string(sequence));
  }
  return text;
}

struct BatchShape {
  int batch, sequence;
  uint32_t seed;
  int tokens() const { return batch * sequence; }
};

// tokens[n] is followed by targets[n] in the text.
inline void CutBatch(const std::vector<unsigned char>& text, const BatchShape& shape,
                     long iteration, std::vector<int>* tokens, std::vector<int>* targets) {
  tokens->resize(shape.tokens());
  targets->resize(shape.tokens());
  const uint32_t places = static_cast<uint32_t>(text.size() - shape.sequence - 1);
  for (int b = 0; b < shape.batch; ++b) {
    const uint32_t at =
        Mix(shape.seed + Mix(uint32_t(iteration) * 1000003u + uint32_t(b))) % places;
    for (int t = 0; t < shape.sequence; ++t) {
      (*tokens)[b * shape.sequence + t] = text[at + t];
      (*targets)[b * shape.sequence + t] = text[at + t + 1];
    }
  }
}

}  // namespace example
