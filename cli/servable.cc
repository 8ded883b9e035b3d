// SPDX-License-Identifier: Apache-2.0
#include "cli/servable.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

namespace atp::cli {
namespace {

constexpr int kMostInterpreters =
    4;  // as the kernel: a script's interpreter may be a script, not without end

std::string ReadStart(const std::string& file, size_t bytes) {
  std::ifstream in(file, std::ios::binary);
  std::string text(bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  text.resize(static_cast<size_t>(in.gcount()));
  return text;
}

// The interpreter that "#!..." names; for env(1) the program that env will look for.
std::string Interpreter(const std::string& start) {
  std::istringstream line(start.substr(2, start.find('\n') - 2));
  std::string interpreter, word;
  line >> interpreter;
  const bool is_env =
      interpreter.size() >= 4 && interpreter.substr(interpreter.size() - 4) == "/env";
  if (!is_env) return interpreter;
  while (line >> word) {
    if (word[0] != '-' && word.find('=') == std::string::npos) {
      const char* path = std::getenv("PATH");
      return FindProgram(word, path ? path : "");
    }
  }
  return interpreter;
}

// The dynamic linker ignores LD_PRELOAD when the kernel raises privileges.
bool RaisesPrivileges(const std::string& file) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return false;
  const bool other_user = (info.st_mode & S_ISUID) && info.st_uid != getuid();
  const bool other_group = (info.st_mode & S_ISGID) && info.st_gid != getgid();
  const bool capabilities =
      getuid() != 0 && getxattr(file.c_str(), "security.capability", nullptr, 0) > 0;
  return other_user || other_group || capabilities;
}

// The dynamic linker that the program asks for, "" when it is linked statically.
std::string DynamicLinker(const std::string& file, const Elf64_Ehdr& header) {
  std::ifstream in(file, std::ios::binary);
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    in.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    if (!in.read(reinterpret_cast<char*>(&segment), sizeof segment)) break;
    if (segment.p_type != PT_INTERP) continue;
    std::string path(segment.p_filesz, '\0');
    in.seekg(static_cast<std::streamoff>(segment.p_offset));
    in.read(path.data(), static_cast<std::streamsize>(path.size()));
    return path.c_str();  // up to its terminator
  }
  return "";
}

std::string WhyNotElf(const std::string& file, const std::string& start) {
  Elf64_Ehdr header;
  std::memcpy(&header, start.data(), sizeof header);
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_X86_64) {
    return file + " is not an x86-64 program, and the shim is; use a 64-bit build of it";
  }
  const std::string linker = DynamicLinker(file, header);
  if (linker.empty()) {
    return file + " is linked statically, so nothing can be loaded into it; link it dynamically " +
           "(the CUDA runtime inside may stay static)";
  }
  if (linker.find("ld-musl") != std::string::npos) {
    return file + " uses musl's dynamic linker " + linker +
           ", and the shim needs glibc's; use a glibc build of it";
  }
  return "";
}

}  // namespace

std::string FindProgram(const std::string& program, const std::string& path) {
  if (program.find('/') != std::string::npos)
    return access(program.c_str(), F_OK) == 0 ? program : "";
  std::istringstream folders(path);
  std::string folder;
  while (std::getline(folders, folder, ':')) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + program;
    struct stat info;
    if (access(file.c_str(), X_OK) == 0 && stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode))
      return file;
  }
  return "";
}

std::string WhyNotServable(const std::string& program) {
  std::string file = program;
  for (int i = 0; i <= kMostInterpreters; ++i) {
    if (RaisesPrivileges(file)) {
      return file +
             " runs with other privileges than yours (setuid, setgid or file capabilities), " +
             "so the dynamic linker loads nothing into it; run a copy without them";
    }
    const std::string start = ReadStart(file, 4096);
    if (start.rfind("#!", 0) == 0) {
      file = Interpreter(start);
      continue;
    }
    if (start.size() >= sizeof(Elf64_Ehdr) && start.compare(0, SELFMAG, ELFMAG) == 0) {
      return WhyNotElf(file, start);
    }
    return file + " is neither an ELF program nor a script with an interpreter";
  }
  return program + " has too many interpreters in a row";
}

}  // namespace atp::cli
