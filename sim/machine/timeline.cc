// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/timeline.h"

#include <cinttypes>

namespace atp::sim {
namespace {

double Microseconds(Time time) { return static_cast<double>(time) / static_cast<double>(kUs); }

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

Timeline::~Timeline() {
  if (file_ != nullptr) std::fclose(file_);
}

// The format allows the list to stay open, so that a file whose process was killed can be shown.
bool Timeline::Open(const std::string& path) {
  file_ = std::fopen(path.c_str(), "w");
  if (file_ == nullptr) return false;
  std::fputs("[\n", file_);
  return true;
}

void Timeline::Flush() {
  if (file_ != nullptr) std::fflush(file_);
}

void Timeline::Span(int device, const std::string& track, const std::string& name, Time begin,
                    Time end, const std::string& arguments) {
  std::fprintf(
      file_,
      "{\"ph\":\"X\",\"pid\":%d,\"tid\":%s,\"name\":%s,\"ts\":%.6f,\"dur\":%.6f,\"args\":{%s}},\n",
      device, Quoted(track).c_str(), Quoted(name).c_str(), Microseconds(begin),
      Microseconds(end - begin), arguments.c_str());
}

void Timeline::Kernel(int device, const std::string& name, Time begin, Time end,
                      const Memory& memory) {
  if (file_ == nullptr) return;
  Span(device, "kernels", name, begin, end,
       "\"fault_us\":" + std::to_string(Microseconds(memory.fault_time)) +
           ",\"faults\":" + std::to_string(memory.faults) +
           ",\"resident\":" + std::to_string(memory.resident_bytes));
}

void Timeline::Transfer(int device, bool to_host, bool by_program, Time begin, Time end) {
  if (file_ == nullptr) return;
  const std::string track =
      std::string(to_host ? "to host" : "to device") + (by_program ? " (program)" : " (driver)");
  Span(device, track, "block", begin, end, "");
}

void Timeline::Call(int device, Lane lane, const char* name, uint64_t address, uint64_t bytes,
                    Time begin, Time end) {
  if (file_ == nullptr) return;
  char arguments[96];
  std::snprintf(arguments, sizeof arguments, "\"address\":\"%" PRIx64 "\",\"bytes\":%" PRIu64,
                address, bytes);
  Span(device, "lane " + std::to_string(lane), name, begin, end, arguments);
}

}  // namespace atp::sim
