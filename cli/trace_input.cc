// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_input.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>

#include "cli/error.h"
#include "cli/trace_convert.h"
#include "policy/trace_json.h"
#include "protocol/trace_reader.h"

namespace atp::cli {
namespace {

[[noreturn]] void Unreadable(const std::string& path, const std::string& why) {
  throw CommandError(kExitUnreadable, path + ": " + why);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) Unreadable(path, std::strerror(errno != 0 ? errno : EIO));
  return std::move(text).str();
}

AnyTrace FromBinary(const std::string& path, std::span<const uint8_t> bytes, bool salvage) {
  protocol::TraceFile file;
  std::string error;
  if (!protocol::ReadTrace(bytes, {.accept_truncated = salvage}, &file, &error)) {
    Unreadable(path, error);
  }
  if (file.HasTensorBody()) return TensorTraceOf(file);
  return RawTraceOf(file);
}

}  // namespace

AnyTrace ReadAnyTrace(const std::string& path, bool salvage) {
  const std::string text = ReadFile(path);
  const std::span bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
  if (protocol::LooksLikeTrace(bytes)) return FromBinary(path, bytes, salvage);
  std::string error;
  if (policy::DetectTraceBody(text) == policy::TraceBody::kRaw) {
    policy::RawTrace raw;
    if (!policy::ReadRawTrace(text, &raw, &error)) Unreadable(path, error);
    return raw;
  }
  policy::Trace trace;
  if (!policy::ReadTrace(text, &trace, &error)) Unreadable(path, error);
  return trace;
}

policy::Trace ReadPeriod(const std::string& path) {
  AnyTrace any = ReadAnyTrace(path);
  if (auto* trace = std::get_if<policy::Trace>(&any)) {
    if (trace->launches.empty()) Unreadable(path, "the trace has no launches");
    return std::move(*trace);
  }
  const policy::RawTrace& raw = std::get<policy::RawTrace>(any);
  const auto period = policy::FindMainPeriod(raw);
  if (!period) {
    Unreadable(path, "a whole run of " + std::to_string(raw.launches.size()) +
                         " launches in which no period repeats; record more iterations");
  }
  return policy::ToPeriod(raw, *period);
}

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw CommandError(kExitWrite, path + ": cannot be written");
}

}  // namespace atp::cli
