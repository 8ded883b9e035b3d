// SPDX-License-Identifier: Apache-2.0
#include "cli/run_records.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <regex>
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

std::vector<char> ReadAll(const fs::path& file) {
  const int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status {};
  const uint64_t most = protocol::RunRecordDeviceAt(protocol::kRunRecordDevices);
  if (fd < 0 || fstat(fd, &status) != 0) {
    const std::string why = std::strerror(errno);
    if (fd >= 0) close(fd);
    throw CommandError(1, file.string() + ": " + why);
  }
  if (!S_ISREG(status.st_mode) || static_cast<uint64_t>(status.st_size) > most) {
    close(fd);
    throw CommandError(1, file.string() + ": not the record of a run");
  }
  std::vector<char> bytes(static_cast<size_t>(status.st_size));
  size_t have = 0;
  for (ssize_t n;
       have < bytes.size() && (n = read(fd, bytes.data() + have, bytes.size() - have)) > 0;) {
    have += static_cast<size_t>(n);
  }
  close(fd);
  bytes.resize(have);
  return bytes;
}

uint64_t Snapshots(const protocol::RunRecord& run) {
  uint64_t all = 0;
  for (const protocol::DeviceRun& device : run.devices) all += device.facts.snapshots;
  return all;
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
  std::ifstream maps(process / "maps");
  // A process in a container has its own number and its own root there.
  static const std::regex mapped(R"((/.*/atp-[0-9]+\.record)( \(deleted\))?$)");
  std::smatch match;
  for (std::string line; std::getline(maps, line);) {
    if (!std::regex_search(line, match, mapped) || match[2].matched) continue;
    return (process / "root").string() + match[1].str();
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
  protocol::RunRecord run, again;
  std::string wrong;
  for (int i = 0; i < kTries; ++i) {
    wrong = ReadRunRecord(ReadAll(file), &run);
    if (i > 0 && !wrong.empty()) break;
    // A measured iteration that was read while its area was written anew would show here.
    const std::string still = ReadRunRecord(ReadAll(file), &again);
    if (wrong.empty() && still.empty() && Snapshots(run) == Snapshots(again)) return run;
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
