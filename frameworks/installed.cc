// SPDX-License-Identifier: Apache-2.0
#include "frameworks/installed.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>

#include "frameworks/imports.h"

namespace atp::frameworks {
namespace {

std::string Parent(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= list.size();) {
    const size_t colon = std::min(list.find(':', at), list.size());
    parts.push_back(list.substr(at, colon - at));
    at = colon + 1;
  }
  return parts;
}

std::string Variable(GetEnv getenv, const char* name) {
  const char* value = getenv(name);
  return value != nullptr ? value : "";
}

// PREFIX/lib/python3.*/site-packages, and what Debian calls it.
void AddFoldersBelow(const std::string& prefix, std::vector<std::string>* folders) {
  for (const char* library : {"/lib", "/lib64"}) {
    DIR* directory = opendir((prefix + library).c_str());
    if (directory == nullptr) continue;
    while (const dirent* entry = readdir(directory)) {
      if (strncmp(entry->d_name, "python3", strlen("python3")) != 0) continue;
      for (const char* packages : {"/site-packages", "/dist-packages"}) {
        folders->push_back(prefix + library + "/" + entry->d_name + packages);
      }
    }
    closedir(directory);
  }
}

}  // namespace

std::string PathOf(const std::string& command, GetEnv getenv) {
  if (command.find('/') != std::string::npos) return command;
  for (const std::string& folder : Split(Variable(getenv, "PATH"))) {
    const std::string path = folder + "/" + command;
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

std::vector<std::string> PackageFolders(const std::string& interpreter, GetEnv getenv) {
  std::vector<std::string> folders = Split(Variable(getenv, "PYTHONPATH"));
  const std::string prefix = Parent(Parent(interpreter));
  AddFoldersBelow(prefix, &folders);
  const std::string virtual_environment = ReadText(prefix + "/pyvenv.cfg");
  const bool alone =
      !virtual_environment.empty() &&
      virtual_environment.find("include-system-site-packages = true") == std::string::npos;
  if (alone) return folders;
  char resolved[PATH_MAX];
  if (realpath(interpreter.c_str(), resolved) != nullptr) {
    AddFoldersBelow(Parent(Parent(resolved)), &folders);
  }
  AddFoldersBelow("/usr/local", &folders);
  AddFoldersBelow(Variable(getenv, "HOME") + "/.local", &folders);
  return folders;
}

bool HasPackage(const std::vector<std::string>& folders, const char* package) {
  for (const std::string& folder : folders) {
    if (!folder.empty() && access((folder + "/" + package).c_str(), R_OK) == 0) return true;
  }
  return false;
}

}  // namespace atp::frameworks
