// SPDX-License-Identifier: Apache-2.0
#include "sim/driver/settings.h"

#include <cctype>
#include <cstdlib>

namespace atp::sim {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool IsOff(std::string value) {
  for (char& c : value) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return value == "0" || value == "off" || value == "false" || value == "no";
}

void Complain(Settings* settings, const char* name, const std::string& value, const char* remedy) {
  if (settings->error.empty()) settings->error = std::string(name) + "=" + value + ": " + remedy;
}

void ReadBytes(Settings* settings, const char* name, uint64_t* bytes) {
  const std::string value = Variable(name);
  if (value.empty()) return;
  *bytes = ParseBytes(value);
  if (*bytes == 0) Complain(settings, name, value, "not a size; write it like 16GiB, 512MiB or 1G");
}

void ReadNumber(Settings* settings, const char* name, long low, long high, const char* remedy,
                long* number) {
  const std::string value = Variable(name);
  if (value.empty()) return;
  char* end = nullptr;
  const long parsed = std::strtol(value.c_str(), &end, 10);
  if (*end != 0 || parsed < low || parsed > high) return Complain(settings, name, value, remedy);
  *number = parsed;
}

}  // namespace

uint64_t ParseBytes(const std::string& text) {
  char* end = nullptr;
  if (text.empty() || !std::isdigit(static_cast<unsigned char>(text[0]))) return 0;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit = end;
  for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  static const std::string kUnits = "KMGT";
  double scale = 1;
  if (!unit.empty() && unit != "B") {
    const size_t power = kUnits.find(unit[0]);
    const std::string rest = unit.substr(1);
    if (power == std::string::npos || (rest != "" && rest != "B" && rest != "IB")) return 0;
    for (size_t i = 0; i <= power; ++i) scale *= 1024;
  }
  const double bytes = number * scale;
  return bytes >= 1 && bytes < 1e18 ? static_cast<uint64_t>(bytes) : 0;
}

Settings Settings::FromEnvironment() {
  Settings s;
  if (const std::string gpu = Variable("ATP_SIM_GPU"); !gpu.empty()) s.machine.profile = gpu;
  ReadBytes(&s, "ATP_SIM_MEMORY", &s.machine.device_bytes);
  ReadBytes(&s, "ATP_SIM_HOST_MEMORY", &s.machine.host_bytes);
  long devices = 1, version = s.driver_version, threads = 0;
  ReadNumber(&s, "ATP_SIM_DEVICES", 1, 16, "a number of devices from 1 to 16", &devices);
  ReadNumber(&s, "ATP_SIM_DRIVER", 11000, 13000,
             "a CUDA version from 11000 to 13000, 1000 * major + 10 * minor", &version);
  ReadNumber(&s, "ATP_SIM_THREADS", 1, 1024, "a number of threads from 1 to 1024", &threads);
  s.machine.devices = static_cast<int>(devices);
  s.driver_version = static_cast<int>(version);
  s.threads = static_cast<unsigned>(threads);
  if (const std::string card = Variable("ATP_SIM_CARD"), start = Variable("ATP_SIM_START");
      !card.empty() && !ParseCardPlace(card, start, &s.card)) {
    Complain(&s, "ATP_SIM_CARD", card + " ATP_SIM_START=" + start,
             "a socket of simcard, with a number behind a comma or without, and milliseconds");
  }
  s.machine.overrides = Variable("ATP_SIM_SET");
  s.concurrent_managed = !IsOff(Variable("ATP_SIM_CMA"));
  s.managed = !IsOff(Variable("ATP_SIM_MANAGED"));
  if (const std::string model = Variable("ATP_SIM_MODEL"); model == "repeats") {
    s.model_repeats = true;
  } else if (!model.empty() && !IsOff(model)) {
    Complain(&s, "ATP_SIM_MODEL", model,
             "only `repeats` is known: repeated launches take their "
             "time and touch their pages, and compute nothing");
  }
  if (const std::string check = Variable("ATP_SIM_CHECK"); check == "uninitialised") {
    s.check_reads = true;
  } else if (!check.empty() && !IsOff(check)) {
    Complain(&s, "ATP_SIM_CHECK", check,
             "only `uninitialised` is known: reads of memory that nobody has written");
  }
  s.stats_file = Variable("ATP_SIM_STATS");
  s.trace_file = Variable("ATP_SIM_TRACE");
  s.machine.timeline = Variable("ATP_SIM_TIMELINE");
  s.faults = Variable("ATP_SIM_FAULT");
  s.eager_modules = Variable("CUDA_MODULE_LOADING") == "EAGER";
  s.restricts_devices = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  s.visible_devices = Variable("CUDA_VISIBLE_DEVICES");
  return s;
}

namespace {

// The device that one entry of CUDA_VISIBLE_DEVICES names, -1 for none.
int NamedDevice(const std::string& entry, const std::vector<std::string>& uuids) {
  if (entry.rfind("GPU-", 0) == 0) {
    int found = -1;
    for (size_t i = 0; i < uuids.size(); ++i) {
      if (uuids[i].rfind(entry, 0) != 0) continue;
      if (found >= 0) return -1;  // ambiguous prefix
      found = static_cast<int>(i);
    }
    return found;
  }
  char* end = nullptr;
  const long number = std::strtol(entry.c_str(), &end, 10);
  const bool valid = end != entry.c_str() && *end == 0 && number >= 0;
  return valid && number < static_cast<long>(uuids.size()) ? static_cast<int>(number) : -1;
}

}  // namespace

std::vector<int> VisibleDevices(const Settings& settings, const std::vector<std::string>& uuids) {
  std::vector<int> visible;
  if (!settings.restricts_devices) {
    for (size_t i = 0; i < uuids.size(); ++i) visible.push_back(static_cast<int>(i));
    return visible;
  }
  size_t start = 0;
  const std::string& list = settings.visible_devices;
  while (start <= list.size()) {
    size_t comma = list.find(',', start);
    if (comma == std::string::npos) comma = list.size();
    const int device = NamedDevice(list.substr(start, comma - start), uuids);
    if (device < 0) break;
    for (int seen : visible) {
      if (seen == device) return {};  // a device named twice hides all, as on a real machine
    }
    visible.push_back(device);
    start = comma + 1;
  }
  return visible;
}

}  // namespace atp::sim
