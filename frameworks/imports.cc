// SPDX-License-Identifier: Apache-2.0
#include "frameworks/imports.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>

namespace atp::frameworks {
namespace {

constexpr char kBlank[] = " \t\r";

// Cuts the first word off `text`.
std::string_view TakeWord(std::string_view* text) {
  const size_t begin = std::min(text->find_first_not_of(kBlank), text->size());
  text->remove_prefix(begin);
  const std::string_view word = text->substr(0, text->find_first_of(kBlank));
  text->remove_prefix(word.size());
  return word;
}

// The package of "a.b.c" is "a".
void AddPackage(std::string_view name, std::set<std::string>* imports) {
  const std::string_view package = name.substr(0, name.find('.'));
  if (!package.empty()) imports->emplace(package);
}

void AddLine(std::string_view line, std::set<std::string>* imports) {
  const std::string_view word = TakeWord(&line);
  if (word == "from") AddPackage(TakeWord(&line), imports);
  if (word != "import") return;
  while (!line.empty()) {
    const size_t comma = std::min(line.find_first_of(",;"), line.size());
    std::string_view part = line.substr(0, comma);
    AddPackage(TakeWord(&part), imports);
    if (comma == line.size() || line[comma] == ';') return;
    line.remove_prefix(comma + 1);
  }
}

}  // namespace

std::set<std::string> ImportsOf(std::string_view text) {
  std::set<std::string> imports;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AddLine(text.substr(0, end), &imports);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return imports;
}

std::string TextOfCommand(const std::vector<std::string>& command) {
  for (size_t i = 1; i < command.size(); ++i) {
    const std::string& word = command[i];
    const std::string next = i + 1 < command.size() ? command[i + 1] : "";
    if (word == "-") return "";
    if (word == "-c") return next;
    if (word == "-m") return "import " + next;
    if (word == "-W" || word == "-X") {
      ++i;  // these have a value of their own
    } else if (word.empty() || word[0] != '-') {
      return ReadText(word);
    }
  }
  return "";
}

std::string ReadText(const std::string& path, size_t most) {
  // A pipe can be read once, and by its owner (python <(make_script)).
  struct stat status;
  if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return "";
  FILE* file = fopen(path.c_str(), "re");
  if (file == nullptr) return "";
  std::string text(most, '\0');
  text.resize(fread(text.data(), 1, text.size(), file));
  fclose(file);
  return text;
}

}  // namespace atp::frameworks
