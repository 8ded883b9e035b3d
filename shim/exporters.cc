// SPDX-License-Identifier: Apache-2.0
#include "shim/exporters.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <new>

#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

constexpr size_t kMostBytes = 8192;  // of the file, and here

std::mutex mutex;
bool read_file = false;
char names[kMostBytes] = "\n";  // between newlines
size_t used = 1;

const char* Environment(const char* name) { return getenv(name); }

// Only a plain file of this user's own is believed or written to.
int OpenOwn(const char* path, int flags) {
  const int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  struct stat info;
  if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != geteuid())) {
    close(fd);
    return -1;
  }
  return fd;
}

void ReadOnce() {
  if (read_file) return;
  read_file = true;
  char path[1024];
  if (!ExportersFile(Environment, path, sizeof path)) return;
  const int fd = OpenOwn(path, O_RDONLY);
  if (fd < 0) return;
  const ssize_t got = read(fd, names + used, kMostBytes - used - 2);
  close(fd);
  if (got <= 0) return;
  used += static_cast<size_t>(got);
  if (names[used - 1] != '\n') names[used++] = '\n';
  names[used] = '\0';
}

bool Known(const char* name) {
  const size_t length = strlen(name);
  for (const char* at = names + 1; (at = strstr(at, name)) != nullptr; ++at) {
    if (at[-1] == '\n' && at[length] == '\n') return true;
  }
  return false;
}

void MakeFolders(char* path) {
  for (char* slash = path + 1; (slash = strchr(slash, '/')) != nullptr; ++slash) {
    *slash = '\0';
    mkdir(path, 0700);
    *slash = '/';
  }
}

void Write(const char* line, size_t length) {
  char path[1024];
  if (!ExportersFile(Environment, path, sizeof path)) return;
  MakeFolders(path);
  const int fd = OpenOwn(path, O_WRONLY | O_CREAT | O_APPEND);
  if (fd < 0 || write(fd, line, length) != static_cast<ssize_t>(length)) {
    ATP_LOG_INFO("%s cannot be written: who exports is not remembered beyond this run", path);
  }
  if (fd >= 0) close(fd);
}

}  // namespace

bool ExportersFile(const char* (*lookup)(const char*), char* out, size_t size) {
  if (Settings().exporters_off) return false;
  const char* state = lookup("XDG_STATE_HOME");
  const char* home = lookup("HOME");
  int length = -1;
  if (Settings().exporters_file[0] != '\0') {
    length = snprintf(out, size, "%s", Settings().exporters_file);
  } else if (state != nullptr && state[0] == '/') {
    length = snprintf(out, size, "%s/atpshim/exporters", state);
  } else if (home != nullptr && home[0] == '/') {
    length = snprintf(out, size, "%s/.local/state/atpshim/exporters", home);
  }
  return length > 0 && static_cast<size_t>(length) < size;
}

bool IsRemembered(const char* name) {
  if (*name == '\0') return false;
  std::lock_guard lock(mutex);
  ReadOnce();
  return Known(name);
}

bool Remember(const char* name) {
  constexpr char kForeignCalls[] = "libffi.";
  char line[256];
  const int length = snprintf(line, sizeof line, "%s\n", name);
  if (Settings().exporters_off || length < 2 || static_cast<size_t>(length) >= sizeof line ||
      strchr(name, '\n') != nullptr ||
      strncmp(name, kForeignCalls, sizeof kForeignCalls - 1) == 0) {
    return false;
  }
  std::lock_guard lock(mutex);
  ReadOnce();
  if (Known(name) || used + static_cast<size_t>(length) >= kMostBytes) return false;
  memcpy(names + used, line, static_cast<size_t>(length) + 1);
  used += static_cast<size_t>(length);
  Write(line, static_cast<size_t>(length));
  return true;
}

void ResetExportersAfterFork() { new (&mutex) std::mutex; }

}  // namespace atp::shim
