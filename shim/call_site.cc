// SPDX-License-Identifier: Apache-2.0
#include "shim/call_site.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <new>

#include "shim/exporters.h"
#include "shim/reentry.h"
#include "shim/settings.h"

namespace atp::shim {

std::atomic<uint64_t> g_dlopens{0};

namespace {

// Beginnings of file names.
constexpr const char* kExporters[] = {"libnccl",  "libnvshmem", "libucp.", "libuct",
                                      "libucs.",  "libucm",     "libmpi.", "libmpi_",
                                      "libmpich", "libfabric.", "libpsm2."};
constexpr const char* kRuntimes[] = {"libcudart"};

const char* BaseName(const char* path) {
  const char* slash = strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

bool StartsWith(const char* text, const char* beginning) {
  return strncmp(text, beginning, strlen(beginning)) == 0;
}

struct Span {
  uintptr_t begin = 0, end = 0;
  bool Holds(uintptr_t address) const { return address >= begin && address < end; }
};

// The objects in question, found again when the loader has loaded or unloaded anything. Readers
// take the lock too: they are allocations in processes with such a library.
struct Objects {
  unsigned long long adds = 0, subs = 0;
  Span exporters[64], runtimes[16], self;
  bool remembered[64] = {};  // of an exporter: known only since it was refused
  size_t exporter_count = 0, runtime_count = 0;
};
std::mutex mutex;
Objects objects;
std::atomic<unsigned long long> seen{~0ull};  // adds + subs when they were found
std::atomic<uint64_t> seen_dlopens{~0ull};    // and the count of dlopen calls at that time
std::atomic<bool> any_exporter{false};

Span SpanOf(const dl_phdr_info& info) {
  Span span{UINTPTR_MAX, 0};
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const auto& segment = info.dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t begin = info.dlpi_addr + segment.p_vaddr;
    if (begin < span.begin) span.begin = begin;
    if (begin + segment.p_memsz > span.end) span.end = begin + segment.p_memsz;
  }
  return span;
}

// The program itself has no name there.
const char* FileOf(const dl_phdr_info& info) {
  return *info.dlpi_name != '\0' ? info.dlpi_name : program_invocation_name;
}

int Collect(dl_phdr_info* info, size_t, void* data) {
  Objects* found = static_cast<Objects*>(data);
  found->adds = info->dlpi_adds;
  found->subs = info->dlpi_subs;
  const Span span = SpanOf(*info);
  const char* file = FileOf(*info);
  const bool known = ExportsMemory(file, Settings().native_sites);
  if (span.Holds(reinterpret_cast<uintptr_t>(&Collect))) {
    found->self = span;
  } else if (known || IsRemembered(BaseName(file))) {
    if (found->exporter_count == 64) return 0;
    found->remembered[found->exporter_count] = !known;
    found->exporters[found->exporter_count++] = span;
  } else {
    for (const char* runtime : kRuntimes) {
      if (StartsWith(BaseName(file), runtime) && found->runtime_count < 16) {
        found->runtimes[found->runtime_count++] = span;
      }
    }
  }
  return 0;
}

int ReadCounts(dl_phdr_info* info, size_t, void* data) {
  *static_cast<unsigned long long*>(data) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

bool In(const Span* spans, size_t count, uintptr_t address) {
  for (size_t i = 0; i < count; ++i) {
    if (spans[i].Holds(address)) return true;
  }
  return false;
}

struct Walk {
  const Objects* objects;
  uintptr_t caller = 0;
};

// The first frame that is neither ours nor the runtime's.
_Unwind_Reason_Code Step(_Unwind_Context* context, void* data) {
  Walk* walk = static_cast<Walk*>(data);
  const uintptr_t address = _Unwind_GetIP(context);
  if (walk->objects->self.Holds(address)) return _URC_NO_REASON;
  if (In(walk->objects->runtimes, walk->objects->runtime_count, address)) return _URC_NO_REASON;
  walk->caller = address;
  return _URC_END_OF_STACK;
}

uintptr_t FindCaller(const Objects& among) {
  const auto direct = reinterpret_cast<uintptr_t>(t_hook_caller);
  const bool behind = among.self.Holds(direct) || In(among.runtimes, among.runtime_count, direct);
  if (direct != 0 && !behind) return direct;
  Walk walk{&among};
  _Unwind_Backtrace(Step, &walk);
  return walk.caller;
}

Caller Classify(uintptr_t caller) {
  for (size_t i = 0; i < objects.exporter_count; ++i) {
    if (!objects.exporters[i].Holds(caller)) continue;
    return objects.remembered[i] ? Caller::kRemembered : Caller::kExporter;
  }
  return Caller::kOrdinary;
}

void AskLoader(uint64_t dlopens) {
  unsigned long long now = 0;
  dl_iterate_phdr(ReadCounts, &now);
  if (seen.load(std::memory_order_acquire) != now) {
    std::lock_guard lock(mutex);
    if (objects.adds + objects.subs != now) {
      objects = Objects{};
      dl_iterate_phdr(Collect, &objects);
    }
    any_exporter.store(objects.exporter_count != 0, std::memory_order_release);
    seen.store(objects.adds + objects.subs, std::memory_order_release);
  }
  seen_dlopens.store(dlopens, std::memory_order_release);
}

// Apart, so that most processes, which have no such library, do not pay for its frame.
[[gnu::noinline]] Caller KindBesideExporters() {
  std::lock_guard lock(mutex);
  return Classify(FindCaller(objects));
}

void CollectOnce() {
  if (objects.self.end != 0) return;
  objects = Objects{};
  dl_iterate_phdr(Collect, &objects);
}

}  // namespace

bool ExportsMemory(const char* path, const char* extra) {
  const char* name = BaseName(path);
  for (const char* exporter : kExporters) {
    if (StartsWith(name, exporter)) return true;
  }
  for (const char* item = extra; *item != '\0';) {
    const size_t length = strcspn(item, ",");
    if (length != 0 && strncmp(name, item, length) == 0) return true;
    item += length;
    if (*item == ',') ++item;
  }
  return false;
}

// The loader is asked when the program has opened something, and now and then: it may still have
// been loading when it was asked.
Caller KindOfCaller() {
  constexpr unsigned kNowAndThen = 64;
  static thread_local unsigned calls __attribute__((tls_model("initial-exec"))) = 0;
  const uint64_t dlopens = g_dlopens.load(std::memory_order_acquire);
  if (seen_dlopens.load(std::memory_order_acquire) != dlopens || ++calls % kNowAndThen == 0) {
    AskLoader(dlopens);
  }
  const bool any = any_exporter.load(std::memory_order_acquire);
  return any ? KindBesideExporters() : Caller::kOrdinary;
}

uintptr_t CallerAddress() {
  std::lock_guard lock(mutex);
  CollectOnce();
  return FindCaller(objects);
}

void DescribeAddress(uintptr_t address, char* text, size_t size) {
  Dl_info info;
  if (address != 0 && dladdr(reinterpret_cast<void*>(address), &info) != 0) {
    snprintf(text, size, "%s+0x%zx", BaseName(info.dli_fname),
             static_cast<size_t>(address - reinterpret_cast<uintptr_t>(info.dli_fbase)));
  } else {
    snprintf(text, size, "unknown code");
  }
}

void DescribeCaller(char* text, size_t size) { DescribeAddress(CallerAddress(), text, size); }

void ResetCallSitesAfterFork() {
  new (&mutex) std::mutex;
  ResetExportersAfterFork();
}

bool RememberCaller() {
  Dl_info info;
  const uintptr_t caller = CallerAddress();
  if (caller == 0 || dladdr(reinterpret_cast<void*>(caller), &info) == 0) return false;
  if (!Remember(BaseName(info.dli_fname))) return false;
  std::lock_guard lock(mutex);
  objects = Objects{};  // looked at anew
  seen.store(~0ull, std::memory_order_release);
  seen_dlopens.store(~0ull, std::memory_order_release);
  return true;
}

}  // namespace atp::shim
