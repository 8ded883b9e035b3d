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
#include "examples/transformer/config.h"

namespace example {

// tiny.txt in the folder of the program.
inline std::string DefaultText() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  const std::string program(path, length > 0 ? length : 0);
  return program.substr(0, program.rfind('/') + 1) + "tiny.txt";
}

inline std::vector<unsigned char> ReadText(const std::string& path, const Config& config) {
  std::ifstream in(path, std::ios::binary);
  if (!in) Options::Refuse("cannot read the text " + path + " (--text names another one)");
  std::vector<unsigned char> text((std::istreambuf_iterator<char>(in)), {});
  if (text.size() < size_t(config.sequence) + 2) {
    Options::Refuse(path + " has " + std::to_string(text.size()) +
                    " bytes: too few for --sequence " + std::to_string(config.sequence));
  }
  return text;
}

// tokens[n] is followed by targets[n] in the text.
inline void CutBatch(const std::vector<unsigned char>& text, const Config& config, int iteration,
                     std::vector<int>* tokens, std::vector<int>* targets) {
  tokens->resize(config.tokens());
  targets->resize(config.tokens());
  const uint32_t places = static_cast<uint32_t>(text.size() - config.sequence - 1);
  for (int b = 0; b < config.batch; ++b) {
    const uint32_t at = Mix(config.seed + Mix(iteration * 1000003u + b)) % places;
    for (int t = 0; t < config.sequence; ++t) {
      (*tokens)[b * config.sequence + t] = text[at + t];
      (*targets)[b * config.sequence + t] = text[at + t + 1];
    }
  }
}

}  // namespace example
