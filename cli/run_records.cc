// SPDX-License-Identifier: Apache-2.0
#include "cli/run_records.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "cli/error.h"
#include "report/page.h"

namespace atp::cli {
namespace {

namespace fs = std::filesystem;

// As shim/run_record.cc has it.
std::vector<fs::path> UsualFolders() {
  std::vector<fs::path> folders;
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && runtime[0] == '/') folders.emplace_back(runtime);
  folders.emplace_back("/dev/shm");
  folders.emplace_back("/tmp");
  return folders;
}

int OpenRecord(const fs::path& file) {
  return open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

// A copy of a file of which most is a hole. What nobody has written costs nothing here either.
class FileCopy {
 public:
  explicit FileCopy(const fs::path& file) {
    const int fd = OpenRecord(file);
    if (fd < 0) throw CommandError(1, file.string() + ": " + std::strerror(errno));
    const bool taken = Take(fd);
    close(fd);
    if (!taken) throw CommandError(1, file.string() + ": not the record of a run");
  }
  ~FileCopy() {
    if (bytes_ != nullptr) munmap(bytes_, size_);
  }
  FileCopy(const FileCopy&) = delete;
  FileCopy& operator=(const FileCopy&) = delete;
  std::span<const char> bytes() const { return {bytes_, size_}; }

 private:
  bool Take(int fd) {
    constexpr uint64_t kMost = protocol::RunRecordDeviceAt(protocol::kRunRecordDevices);
    struct stat status {};
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const auto size = static_cast<uint64_t>(status.st_size);
    if (size == 0 || size > kMost) return false;
    void* map = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (map == MAP_FAILED) return false;
    bytes_ = static_cast<char*>(map);
    size_ = size;
    for (off_t at = 0; (at = lseek(fd, at, SEEK_DATA)) >= 0 && at < status.st_size;) {
      const off_t hole = std::min(lseek(fd, at, SEEK_HOLE), status.st_size);
      while (at < hole) {
        const ssize_t n = pread(fd, bytes_ + at, static_cast<size_t>(hole - at), at);
        if (n <= 0) return n == 0;  // it has been cut off meanwhile: zeros are no record
        at += n;
      }
    }
    return true;
  }

  char* bytes_ = nullptr;
  size_t size_ = 0;
};

// An area is written anew only after one more has been counted (run_record.h).
bool HasMeasuredMore(const fs::path& file, const protocol::RunRecord& run) {
  const int fd = OpenRecord(file);
  bool more = fd < 0;
  for (const protocol::DeviceRun& device : run.devices) {
    const uint64_t at = protocol::RunRecordDeviceAt(static_cast<uint32_t>(device.facts.ordinal)) +
                        offsetof(protocol::RunRecordDevice, snapshots);
    uint64_t now = 0;
    more |= pread(fd, &now, sizeof now, static_cast<off_t>(at)) != sizeof now ||
            now != device.facts.snapshots;
  }
  if (fd >= 0) close(fd);
  return more;
}

// What a process has mapped; a line's end is its name.
std::string MapsOf(const fs::path& process) {
  std::string text;
  const int fd = open((process / "maps").c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return text;
  char buffer[1 << 16];
  for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(n));
  }
  close(fd);
  return text;
}

bool IsRecordName(std::string_view name) {
  constexpr std::string_view kBegin = "atp-", kEnd = ".record";
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return false;
  name.remove_prefix(kBegin.size());
  name.remove_suffix(std::min(kEnd.size(), name.size()));
  return !name.empty() && name.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

fs::path RecordFolder() {
  for (const fs::path& folder : UsualFolders()) {
    if (access(folder.c_str(), W_OK | X_OK) == 0) return folder;
  }
  return "/tmp";
}

std::optional<fs::path> FindRecord(pid_t pid) {
  const fs::path process = fs::path("/proc") / std::to_string(pid);
  const std::string maps = MapsOf(process);
  for (size_t end = 0; (end = maps.find(".record\n", end)) != std::string::npos; ++end) {
    const size_t begin = maps.rfind('\n', end) + 1;  // of the line; 0 when there is none before
    const size_t line_end = maps.find('\n', end);
    const std::string line = maps.substr(begin, line_end - begin);
    const size_t path = line.find('/');
    if (path == std::string::npos || !IsRecordName(line.substr(line.rfind('/') + 1))) continue;
    // A process in a container has its own number and its own root there.
    return (process / "root").string() + line.substr(path);
  }
  if (fs::exists(process)) return std::nullopt;
  for (const fs::path& folder : UsualFolders()) {
    const fs::path file = folder / ("atp-" + std::to_string(pid) + ".record");
    if (access(file.c_str(), R_OK) == 0) return file;
  }
  return std::nullopt;
}

protocol::RunRecord ReadRecord(const fs::path& file) {
  constexpr int kTries = 8;
  protocol::RunRecord run;
  std::string wrong;
  for (int i = 0; i < kTries; ++i) {
    wrong = ReadRunRecord(FileCopy(file).bytes(), &run);
    if (i > 0 && !wrong.empty()) break;
    if (wrong.empty() && !HasMeasuredMore(file, run)) return run;
  }
  throw CommandError(1, file.string() + ": " + (wrong.empty() ? "it changes too fast" : wrong));
}

std::vector<RunningJob> RunningJobs() {
  std::vector<pid_t> pids;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") == std::string::npos) pids.push_back(std::stoi(name));
  }
  std::sort(pids.begin(), pids.end());
  std::vector<RunningJob> jobs;
  for (const pid_t pid : pids) {
    try {
      const auto file = FindRecord(pid);
      if (file) jobs.push_back({pid, ReadRecord(*file)});
    } catch (const CommandError&) {
      // It has ended meanwhile, or is of another version.
    }
  }
  return jobs;
}

bool WritePrivately(const std::string& file, const std::string& text) {
  const int fd = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  size_t done = 0;
  for (ssize_t n;
       done < text.size() && (n = write(fd, text.data() + done, text.size() - done)) > 0;) {
    done += static_cast<size_t>(n);
  }
  return close(fd) == 0 && done == text.size();
}

bool WritePageOf(const protocol::RunRecord& run) {
  const std::string file = run.header.report_file;
  return file.ends_with(".html") && WritePrivately(file, report::MakePage(run));
}

}  // namespace atp::cli
