// SPDX-License-Identifier: Apache-2.0
#include "shim/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "shim/counters.h"
#include "shim/placement.h"
#include "shim/resolve.h"
#include "shim/settings.h"
#include "shim/shimlog.h"

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
    if (length > 0) {
      const ssize_t written = write(fd_, text, static_cast<size_t>(length));
      ok_ = ok_ && written == length;
    }
  }
  bool ok() const { return ok_; }

 private:
  int fd_;
  bool ok_ = true;
};

}  // namespace

void WriteReport() {
  if (Settings().report_file[0] == '\0') return;
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
    file.Add("%s{\"device\":%d,\"budget_bytes\":%llu,\"managed_bytes\":%llu,\"native_bytes\":%llu}",
             separator, ordinal, static_cast<unsigned long long>(device->budget),
             static_cast<unsigned long long>(usage.managed),
             static_cast<unsigned long long>(usage.native));
    separator = ",";
  }
  file.Add("]}\n");
  if (!file.ok()) ATP_LOG_WARN("the report could not be written whole");
  close(fd);
}

}  // namespace atp::shim
