// SPDX-License-Identifier: Apache-2.0
#include "shim/report.h"

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/counters.h"
#include "shim/findings.h"
#include "shim/lifecycle.h"
#include "shim/lookup_sites.h"
#include "shim/placement.h"
#include "shim/report_page.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"
#include "shim/unseen.h"

namespace atp::shim {
namespace {

class JsonFile {
 public:
  explicit JsonFile(int fd) : fd_(fd) {}
  __attribute__((format(printf, 2, 3))) void Add(const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const bool fits = length >= 0 && static_cast<size_t>(length) < sizeof text;
    ok_ = ok_ && fits && write(fd_, text, static_cast<size_t>(length)) == length;
  }
  bool ok() const { return ok_; }

 private:
  int fd_;
  bool ok_ = true;
};

unsigned long long Load(const std::atomic<uint64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

enum class Import : uint8_t { kHooked, kUnseen, kRuntimeEntry };
Import KindOf(const char* symbol) {
  if (IsRuntimeEntry(symbol)) return Import::kRuntimeEntry;
  return IsUnseen(symbol) ? Import::kUnseen : Import::kHooked;
}

struct Imports {
  JsonFile* file;
  Import wanted;
  const char* separator = "";
};

// The program itself has no name in the loader's list; a name that would need escaping is cut.
const char* ObjectName(const char* path) {
  if (path == nullptr || *path == '\0') return "(program)";
  return strpbrk(path, "\"\\\n") != nullptr ? "?" : path;
}

void WriteImport(const char* object, const char* symbol, void* context) {
  Imports* imports = static_cast<Imports*>(context);
  if (KindOf(symbol) != imports->wanted) return;
  imports->file->Add("%s{\"object\":\"%.300s\",\"symbol\":\"%s\"}", imports->separator,
                     ObjectName(object), symbol);
  imports->separator = ",";
}

void WriteLookupSite(Lookup way, const void* caller, uint64_t count, void* context) {
  Imports* imports = static_cast<Imports*>(context);
  Dl_info info;
  void* map = nullptr;  // not the file's name in Dl_info: that of the program is what argv[0] says
  const bool known = dladdr1(caller, &info, &map, RTLD_DL_LINKMAP) != 0;
  imports->file->Add("%s{\"object\":\"%.300s\",\"way\":\"%s\",\"count\":%llu}", imports->separator,
                     known ? ObjectName(static_cast<link_map*>(map)->l_name) : "?",
                     kLookupNames[static_cast<size_t>(way)],
                     static_cast<unsigned long long>(count));
  imports->separator = ",";
}

// How many C libraries are loaded: each namespace of dlmopen has its own, and we are in the first.
int Namespaces() {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) return 1;
  char line[1024];
  int count = 0;
  while (fgets(line, sizeof line, maps) != nullptr) {
    count += strstr(line, " 00000000 ") != nullptr && strstr(line, "/libc.so.6\n") != nullptr;
  }
  fclose(maps);
  return count;
}

// What atp doctor tells about a run (findings.h).
void WriteFindings(JsonFile* file) {
  const char* separator = "";
  file->Add("\"driver\":\"%.300s\",\"active\":%s,\"lookups\":{", DriverPath(),
            Active() ? "true" : "false");
  for (size_t i = 0; i < kLookups; ++i) {
    file->Add("%s\"%s\":%llu", separator, kLookupNames[i], Load(g_findings.lookups[i]));
    separator = ",";
  }
  file->Add("},\n\"namespaces\":%d,\"linked\":[", Namespaces());
  Imports imports{file, Import::kHooked};
  ForEachImport(WriteImport, &imports);
  file->Add("],\n\"runtime_entries\":[");
  imports = {file, Import::kRuntimeEntry};
  ForEachImport(WriteImport, &imports);
  file->Add("],\n\"lookup_sites\":[");
  imports = {file, Import::kHooked};
  ForEachLookupSite(WriteLookupSite, &imports);
  file->Add("],\n\"unseen\":[");
  imports = {file, Import::kUnseen};
  ForEachImport(WriteImport, &imports);
  ForEachUnseenLookup([](const char* symbol, void* all) { WriteImport("(dlsym)", symbol, all); },
                      &imports);
  file->Add("],\n\"native\":{");
  separator = "";
  for (size_t i = 0; i < kWhysNative; ++i) {
    if (Load(g_findings.native_count[i]) == 0) continue;
    file->Add("%s\"%s\":{\"count\":%llu,\"bytes\":%llu}", separator, kWhyNativeNames[i],
              Load(g_findings.native_count[i]), Load(g_findings.native_bytes[i]));
    separator = ",";
  }
  file->Add("},\n\"own_managed\":{\"count\":%llu,\"bytes\":%llu},",
            Load(g_findings.own_managed_count), Load(g_findings.own_managed_bytes));
  file->Add("\"refused_exports\":%llu,\"asked_before_allocating\":%s",
            Load(g_findings.refused_exports),
            g_findings.asked_before_allocating.load() ? "true" : "false");
}

}  // namespace

void WriteReport() {
  if (Settings().report_file[0] == '\0') return;
  if (IsPageName(Settings().report_file)) return WritePage();
  const int fd = OpenNamedFile(Settings().report_file, /*append=*/false);
  if (fd < 0) return;
  JsonFile file(fd);
  file.Add("{\"format\":\"atp-report\",\"version\":1,\"pid\":%d,\n\"hooks\":{",
           static_cast<int>(getpid()));
  const char* separator = "";
  for (size_t i = 0; i < kHookCount; ++i) {
    const uint64_t calls = HookCalls(static_cast<HookId>(i));
    if (calls == 0) continue;
    file.Add("%s\"%s\":%llu", separator, kHooks[i].symbol, static_cast<unsigned long long>(calls));
    separator = ",";
  }
  file.Add("},\n\"devices\":[");
  separator = "";
  for (int ordinal = 0; ordinal < kMaxDevices; ++ordinal) {
    const Device* device = DeviceOf(ordinal);
    if (device == nullptr) continue;
    const Usage usage = UsageOf(*device);
    file.Add(
        "%s{\"device\":%d,\"served\":%s,\"ever_managed\":%s,\"budget_bytes\":%llu,\"managed_"
        "bytes\":%llu,\"native_bytes\":%llu}",
        separator, ordinal, device->can_manage ? "true" : "false",
        device->ever_managed.load() ? "true" : "false",
        static_cast<unsigned long long>(device->budget),
        static_cast<unsigned long long>(usage.managed),
        static_cast<unsigned long long>(usage.native));
    separator = ",";
  }
  file.Add("],\n");
  WriteFindings(&file);
  file.Add("}\n");
  if (!file.ok()) ATP_LOG_WARN("the report could not be written whole");
  close(fd);
}

}  // namespace atp::shim
