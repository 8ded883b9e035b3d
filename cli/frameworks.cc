// SPDX-License-Identifier: Apache-2.0
#include "cli/frameworks.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

namespace atp::cli {
namespace {

constexpr char kCache[] = "cuts tensors out of segments in a cache of its own";
constexpr Framework kFrameworks[] = {
    {"tinygrad", "tinygrad",
     "asks the driver for each buffer; what lives within a step shares one"},
    {"numba", "Numba", "asks the driver for each array"},
    {"cupy", "CuPy", kCache},
    {"torch", "PyTorch", kCache},
    {"jax", "JAX", "cuts arrays out of one arena that it takes at the start"},
    {"tensorflow", "TensorFlow", "cuts tensors out of one arena that it takes at the start"},
    {"vllm", "vLLM", "takes most of the card for its cache of keys and values"},
};

// The package of "a.b.c as d" is "a".
std::string Package(const std::string& name) { return name.substr(0, name.find('.')); }

// The packages that one line of Python imports.
void AddImports(const std::string& line, std::set<std::string>* imports) {
  std::istringstream words(line);
  std::string word, name;
  if (!(words >> word)) return;
  if (word == "from" && words >> name) imports->insert(Package(name));
  if (word != "import") return;
  for (std::string part; std::getline(words, part, ',');) {
    std::istringstream first(part);
    if (first >> name) imports->insert(Package(name));
  }
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool IsPython(const std::string& file) {
  return std::filesystem::path(file).filename().string().rfind("python", 0) == 0;
}

// The Python text that a command runs; "import X" stands for the package of -m.
std::string PythonText(const std::string& file, const std::vector<std::string>& command) {
  if (!IsPython(file)) {
    const std::string text = ReadText(file);
    const std::string first = text.substr(0, text.find('\n'));
    return first.rfind("#!", 0) == 0 && first.find("python") != std::string::npos ? text : "";
  }
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    if (word == "-c") return next;
    if (word == "-m") return "import " + next;
    if (word == "-W" || word == "-X") {
      ++i;
    } else if (word[0] != '-') {
      return ReadText(word);
    }
  }
  return "";
}

}  // namespace

std::vector<Framework> FrameworksInText(const std::string& text) {
  std::set<std::string> imports;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) AddImports(line, &imports);
  std::vector<Framework> found;
  std::copy_if(std::begin(kFrameworks), std::end(kFrameworks), std::back_inserter(found),
               [&](const Framework& framework) { return imports.count(framework.module) > 0; });
  return found;
}

std::vector<Framework> FrameworksOf(const std::string& file,
                                    const std::vector<std::string>& command) {
  return FrameworksInText(PythonText(file, command));
}

}  // namespace atp::cli
