// SPDX-License-Identifier: Apache-2.0
#include "cli/driver_probe.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace atp::cli {
namespace {

// What the child writes first; the sizes of `count` cards follow.
struct Answer {
  int32_t loaded = 0, status = 0, count = 0;
};

// The four driver calls that are needed, by their documented prototypes (CUDA driver API manual).
// cli/ does not include cuda.h.
struct Driver {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*total)(size_t*, int);
};

bool Load(const std::string& library, Driver* driver) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return false;
  driver->init = reinterpret_cast<decltype(driver->init)>(dlsym(handle, "cuInit"));
  driver->count = reinterpret_cast<decltype(driver->count)>(dlsym(handle, "cuDeviceGetCount"));
  driver->get = reinterpret_cast<decltype(driver->get)>(dlsym(handle, "cuDeviceGet"));
  driver->total = reinterpret_cast<decltype(driver->total)>(dlsym(handle, "cuDeviceTotalMem_v2"));
  return driver->init && driver->count && driver->get && driver->total;
}

[[noreturn]] void AnswerAndEnd(const std::string& library, int out) {
  Driver driver{};
  Answer answer;
  std::vector<uint64_t> sizes;
  answer.loaded = Load(library, &driver);
  if (answer.loaded) answer.status = driver.init(0);
  int count = 0;
  if (answer.loaded && answer.status == 0) answer.status = driver.count(&count);
  for (int i = 0; i < count && answer.status == 0; ++i) {
    int device = 0;
    size_t bytes = 0;
    answer.status = driver.get(&device, i);
    if (answer.status == 0) answer.status = driver.total(&bytes, device);
    sizes.push_back(bytes);
  }
  answer.count = static_cast<int32_t>(sizes.size());
  const bool written = write(out, &answer, sizeof answer) == sizeof answer &&
                       write(out, sizes.data(), sizes.size() * sizeof(uint64_t)) >= 0;
  _exit(written ? 0
                : 1);  // no destructors: the driver must not write its statistics for this process
}

}  // namespace

DriverProbe ProbeDriver(const std::string& library,
                        const std::map<std::string, std::string>& environment) {
  DriverProbe probe;
  int ends[2];
  if (pipe(ends) != 0) return probe;
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    for (const auto& [name, value] : environment) setenv(name.c_str(), value.c_str(), 1);
    AnswerAndEnd(library, ends[1]);
  }
  close(ends[1]);
  Answer answer;
  if (child > 0 && read(ends[0], &answer, sizeof answer) == sizeof answer) {
    probe.loaded = answer.loaded;
    probe.status = answer.status;
    probe.card_bytes.resize(static_cast<size_t>(answer.count));
    for (uint64_t& bytes : probe.card_bytes) {
      if (read(ends[0], &bytes, sizeof bytes) != sizeof bytes) bytes = 0;
    }
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return probe;
}

}  // namespace atp::cli
