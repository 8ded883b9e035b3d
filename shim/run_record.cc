// SPDX-License-Identifier: Apache-2.0
#include "shim/run_record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <mutex>

#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

using protocol::RunRecordDevice;
using protocol::RunRecordHeader;

std::mutex mutex;
char path[600];  // empty: not created, or removed
bool refused = false;
char* mapped[protocol::kRunRecordDevices];

// Killed processes leave theirs: a day later nobody asks any more. Never that of a live one.
void RemoveOldRecords(const char* folder) {
  constexpr time_t kKept = 24 * 60 * 60;
  DIR* directory = opendir(folder);
  if (directory == nullptr) return;
  while (const dirent* entry = readdir(directory)) {
    int pid = 0, length = 0;
    if (sscanf(entry->d_name, "atp-%d.record%n", &pid, &length) != 1 || pid <= 0 || length == 0 ||
        entry->d_name[length] != '\0') {
      continue;
    }
    struct stat status {};
    const bool old = fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                     status.st_uid == geteuid() && status.st_mtime + kKept < time(nullptr);
    if (old && kill(pid, 0) != 0 && errno == ESRCH) unlinkat(dirfd(directory), entry->d_name, 0);
  }
  closedir(directory);
}

// The first of these that can be written to. Memory rather than a disk where there is a choice: a
// page that is being written out would make its next writer wait.
bool CreateIn(const char* folder) {
  if (folder == nullptr || folder[0] != '/') return false;
  RemoveOldRecords(folder);
  const int length = snprintf(path, sizeof path, "%s/atp-%d.record", folder, getpid());
  if (length < 0 || static_cast<size_t>(length) >= sizeof path) return false;
  unlink(path);  // left behind by one that had our number and was killed
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const RunRecordHeader header = DescribeRun();
  const bool written = posix_fallocate(fd, 0, protocol::kRunRecordPage) == 0 &&
                       pwrite(fd, &header, sizeof header, 0) == sizeof header;
  close(fd);
  if (!written) unlink(path);
  return written;
}

bool Create() {
  if (path[0] != '\0') return true;
  if (refused) return false;
  const char* wanted = Settings().record_folder;
  const bool created = wanted[0] != '\0' ? CreateIn(wanted)
                                         : CreateIn(getenv("XDG_RUNTIME_DIR")) ||
                                               CreateIn("/dev/shm") || CreateIn("/tmp");
  if (created) return true;
  path[0] = '\0';
  refused = true;
  ATP_LOG_INFO("no record of this run can be written: %s", strerror(errno));
  return false;
}

bool Reserve(uint64_t offset, uint64_t bytes) {
  const int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return false;
  const int result = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  close(fd);
  return result == 0;
}

char* Map(uint32_t device) {
  const uint64_t offset = protocol::RunRecordDeviceAt(device);
  if (!Reserve(offset, protocol::kRunRecordFixed)) return nullptr;
  const int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  void* memory = mmap(nullptr, protocol::kRunRecordStride, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                      static_cast<off_t>(offset));
  close(fd);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}

void ReadCommand(char* out, size_t size) {
  const int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t got = read(fd, out, size - 1);
  close(fd);
  for (ssize_t i = 0; i + 1 < got; ++i) {
    if (out[i] == '\0') out[i] = ' ';
  }
}

// Left empty when it does not fit. The program may change its folder later, and others its record.
void AbsoluteReportFile(char* out, size_t size) {
  char name[512];
  if (!ExpandFileName(Settings().report_file, name, sizeof name) || name[0] == '\0') return;
  char folder[512] = "";
  if (name[0] != '/' && getcwd(folder, sizeof folder) == nullptr) return;
  const int length = snprintf(out, size, "%s%s%s", folder, name[0] == '/' ? "" : "/", name);
  if (length < 0 || static_cast<size_t>(length) >= size) out[0] = '\0';
}

}  // namespace

RunRecordHeader DescribeRun() {
  RunRecordHeader header{};
  memcpy(header.magic, protocol::kRunRecordMagic, sizeof header.magic);
  header.version = protocol::kRunRecordVersion;
  header.device_bytes = sizeof(RunRecordDevice);
  header.pid = getpid();
  header.simulated = real().atpSimNow != nullptr;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  header.started_ns =
      static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
  ReadCommand(header.command, sizeof header.command);
  AbsoluteReportFile(header.report_file, sizeof header.report_file);
  return header;
}

RunRecordDevice* OpenRunRecord(int device) {
  if (Settings().no_record || device < 0 ||
      static_cast<uint32_t>(device) >= protocol::kRunRecordDevices) {
    return nullptr;
  }
  std::lock_guard lock(mutex);
  char*& memory = mapped[device];
  if (memory == nullptr && Create()) memory = Map(static_cast<uint32_t>(device));
  return reinterpret_cast<RunRecordDevice*>(memory);
}

char* ReserveSnapshot(int device, uint64_t snapshot, uint64_t bytes) {
  static uint64_t reserved[protocol::kRunRecordDevices][2];
  std::lock_guard lock(mutex);
  if (bytes > protocol::kRunRecordSnapshotBytes || mapped[device] == nullptr) return nullptr;
  const uint64_t at = protocol::RunRecordSnapshotAt(snapshot);
  uint64_t& have = reserved[device][snapshot % 2];
  if (bytes > have) {
    if (path[0] == '\0' ||
        !Reserve(protocol::RunRecordDeviceAt(static_cast<uint32_t>(device)) + at, bytes)) {
      return nullptr;
    }
    have = bytes;
  }
  return mapped[device] + at;
}

std::vector<char> CopyRunRecord() {
  std::lock_guard lock(mutex);
  std::vector<char> copy;
  if (path[0] == '\0') return copy;
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return copy;
  struct stat status {};
  if (fstat(fd, &status) == 0) copy.resize(static_cast<size_t>(status.st_size));
  size_t have = 0;
  for (ssize_t got = 1; got > 0 && have < copy.size(); have += static_cast<size_t>(got)) {
    got = read(fd, copy.data() + have, copy.size() - have);
    if (got < 0) break;
  }
  close(fd);
  copy.resize(have);
  return copy;
}

void EndRunRecord() {
  std::lock_guard lock(mutex);
  if (path[0] == '\0') return;
  if (Settings().record_folder[0] == '\0') {
    unlink(path);
  } else if (const int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC); fd >= 0) {
    const uint32_t ended = 1;
    if (pwrite(fd, &ended, sizeof ended, offsetof(RunRecordHeader, ended)) < 0) unlink(path);
    close(fd);
  }
  path[0] = '\0';
  refused = true;
}

}  // namespace atp::shim
