// SPDX-License-Identifier: Apache-2.0
#include "frameworks/recognise.h"

#include <cstring>
#include <set>

#include "frameworks/imports.h"

namespace atp::frameworks {
namespace {

bool BeginsWith(const std::string& text, const char* beginning) {
  return beginning != nullptr && text.rfind(beginning, 0) == 0;
}

std::string FileName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool IsPython(const std::string& file) { return BeginsWith(FileName(file), "python"); }

// A script that names Python in its first line becomes what the kernel makes of it.
void FollowFirstLine(std::string* file, std::vector<std::string>* command) {
  const std::string text = ReadText(*file, 256);  // as much as the kernel looks at
  if (text.rfind("#!", 0) != 0) return;
  const std::string line = text.substr(2, text.find('\n') - 2);
  const size_t python = line.rfind("python");
  if (python == std::string::npos) return;
  const size_t begin = line.find_last_of(" \t", python);
  const std::string interpreter = line.substr(begin == std::string::npos ? 0 : begin + 1);
  if (command->empty()) command->emplace_back();
  (*command)[0] = *file;
  command->insert(command->begin(), interpreter.substr(0, interpreter.find_first_of(" \t")));
  *file = (*command)[0];
}

bool IsSet(GetEnv getenv, const char* name) { return name != nullptr && getenv(name) != nullptr; }

// By what the user has decided about this framework's memory; null: by nothing.
const char* DecidedBy(const Profile& profile, const std::string& text, GetEnv getenv) {
  for (const Variable& variable : profile.set) {
    if (IsSet(getenv, variable.name)) return variable.name;
  }
  for (const char* name : profile.decisive) {
    if (IsSet(getenv, name)) return name;
  }
  for (const char* word : profile.words) {
    if (word != nullptr && text.find(word) != std::string::npos) return word;
  }
  return nullptr;
}

// Fills in what `found` sets: all of its profile's variables, or none where somebody has decided.
void Decide(const std::string& text, GetEnv getenv, std::set<std::string>* taken,
            Recognised* found) {
  const Profile& profile = *found->profile;
  found->decided_by = DecidedBy(profile, text, getenv);
  if (found->decided_by != nullptr) return;
  for (const Variable& variable : profile.set) {
    if (variable.name != nullptr && taken->insert(variable.name).second) {
      found->set.push_back(variable);
    }
  }
}

// How this profile applies, if it does.
class Judge {
 public:
  Judge(const std::string& file, const std::vector<std::string>& command, GetEnv getenv)
      : name_(FileName(file)), setting_(getenv("ATP_FRAMEWORK")) {
    if (setting_ != nullptr && (strcmp(setting_, "auto") == 0 || !IsFrameworkSetting(setting_))) {
      setting_ = nullptr;
    }
    if (!IsPython(file)) return;
    text_ = TextOfCommand(command);
    imports_ = ImportsOf(text_);
    folders_ = PackageFolders(PathOf(command.empty() ? file : command[0], getenv), getenv);
  }

  const std::string& text() const { return text_; }

  bool Applies(const Profile& profile, How* how) const {
    if (setting_ != nullptr) return *how = How::kNamed, Names(setting_, profile);
    if (profile.only_if_named) return false;
    const bool imported = profile.module != nullptr && imports_.count(profile.module) > 0;
    if (imported || BeginsWith(name_, profile.program)) return *how = How::kCommand, true;
    return *how = How::kInstalled, profile.if_installed && HasPackage(folders_, profile.module);
  }

 private:
  std::string name_;
  const char* setting_;  // the keys of ATP_FRAMEWORK; null: recognise
  std::string text_;     // of a script
  std::set<std::string> imports_;
  std::vector<std::string> folders_;
};

}  // namespace

bool CanHaveProfiles(const std::string& file) {
  if (IsPython(file)) return true;
  for (const Profile& profile : Profiles()) {
    if (BeginsWith(FileName(file), profile.program)) return true;
  }
  return false;
}

std::vector<Recognised> Recognise(const std::string& given, std::vector<std::string> command,
                                  GetEnv getenv) {
  std::string file = given;
  if (!CanHaveProfiles(file)) FollowFirstLine(&file, &command);
  if (!CanHaveProfiles(file)) return {};
  for (const char* name : {"ATP_POLICY", "ATP_FRAMEWORK"}) {
    const char* value = getenv(name);
    if (value != nullptr && IsOff(value)) return {};
  }
  const Judge judge(file, command, getenv);
  std::vector<Recognised> all;
  std::set<std::string> taken;
  for (const Profile& profile : Profiles()) {
    Recognised found = {&profile, How::kCommand, {}};
    if (!judge.Applies(profile, &found.how)) continue;
    Decide(judge.text(), getenv, &taken, &found);
    all.push_back(found);
  }
  return all;
}

}  // namespace atp::frameworks
