// SPDX-License-Identifier: Apache-2.0
#include "cli/driver_probe.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace atp::cli {
namespace {

// What the child writes: first this, then one PipedCard for each.
struct Answer {
  int32_t loaded = 0, status = 0, version = 0, count = 0;
};
struct PipedCard {
  char name[128] = {};
  uint64_t bytes = 0;
  int32_t major = 0, minor = 0, managed = 0, concurrent = 0, coherent = 0;
};

// The driver calls that are needed, by their documented prototypes (CUDA driver API manual). cli/
// does not include cuda.h. Those in the second row may be missing.
struct Driver {
  int (*init)(unsigned);
  int (*count)(int*);
  int (*get)(int*, int);
  int (*total)(size_t*, int);

  int (*version)(int*);
  int (*name)(char*, int, int);
  int (*attribute)(int*, int, int);
};
// CUdevice_attribute
constexpr int kMajor = 75, kMinor = 76, kManaged = 83, kConcurrent = 89, kCoherent = 100;

template <typename Function>
void Find(void* handle, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(handle, name));
}

bool Load(const std::string& library, Driver* driver) {
  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return false;
  Find(handle, "cuInit", &driver->init);
  Find(handle, "cuDeviceGetCount", &driver->count);
  Find(handle, "cuDeviceGet", &driver->get);
  Find(handle, "cuDeviceTotalMem_v2", &driver->total);
  Find(handle, "cuDriverGetVersion", &driver->version);
  Find(handle, "cuDeviceGetName", &driver->name);
  Find(handle, "cuDeviceGetAttribute", &driver->attribute);
  return driver->init && driver->count && driver->get && driver->total;
}

int Describe(const Driver& driver, int ordinal, PipedCard* card) {
  int device = 0;
  size_t bytes = 0;
  int status = driver.get(&device, ordinal);
  if (status == 0) status = driver.total(&bytes, device);
  card->bytes = bytes;
  if (driver.name) driver.name(card->name, sizeof card->name - 1, device);
  const auto ask = [&](int attribute, int32_t* value) {
    if (driver.attribute) driver.attribute(value, attribute, device);
  };
  ask(kMajor, &card->major);
  ask(kMinor, &card->minor);
  ask(kManaged, &card->managed);
  ask(kConcurrent, &card->concurrent);
  ask(kCoherent, &card->coherent);
  return status;
}

[[noreturn]] void AnswerAndEnd(const std::string& library, int out) {
  Driver driver{};
  Answer answer;
  std::vector<PipedCard> cards;
  answer.loaded = Load(library, &driver);
  if (answer.loaded && driver.version) driver.version(&answer.version);
  if (answer.loaded) answer.status = driver.init(0);
  int count = 0;
  if (answer.loaded && answer.status == 0) answer.status = driver.count(&count);
  for (int i = 0; i < count && answer.status == 0; ++i) {
    cards.emplace_back();
    answer.status = Describe(driver, i, &cards.back());
  }
  answer.count = static_cast<int32_t>(cards.size());
  const bool written = write(out, &answer, sizeof answer) == sizeof answer &&
                       write(out, cards.data(), cards.size() * sizeof(PipedCard)) >= 0;
  _exit(written ? 0
                : 1);  // no destructors: the driver must not write its statistics for this process
}

bool ReadWhole(int in, void* data, size_t bytes) {
  for (size_t got = 0; got < bytes;) {
    const ssize_t n = read(in, static_cast<char*>(data) + got, bytes - got);
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  return true;
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
  if (child > 0 && ReadWhole(ends[0], &answer, sizeof answer)) {
    probe.loaded = answer.loaded;
    probe.status = answer.status;
    probe.version = answer.version;
    for (int32_t i = 0; i < answer.count; ++i) {
      PipedCard card;
      if (!ReadWhole(ends[0], &card, sizeof card)) break;
      probe.cards.push_back({card.name, card.bytes, card.major, card.minor, card.managed != 0,
                             card.concurrent != 0, card.coherent != 0});
    }
  }
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return probe;
}

}  // namespace atp::cli
