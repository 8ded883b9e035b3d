// SPDX-License-Identifier: Apache-2.0
#include "shim/settings.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

#include "frameworks/profiles.h"
#include "protocol/share_report.h"
#include "shim/shimlog.h"

namespace atp::shim {
namespace {

bool CopyName(const char* text, char* out, size_t size) {
  if (strlen(text) >= size) return false;
  strcpy(out, text);
  return true;
}

bool ParsePolicy(const char* text, Configuration* s) {
  bool on = false;
  if (strcmp(text, "learned") == 0) {
    s->policy = Policy::kLearned;
  } else if (strcmp(text, "managed") == 0) {
    s->policy = Policy::kManaged;
  } else if (ParseBool(text, &on) && !on) {
    s->policy = Policy::kOff;
  } else {
    return false;
  }
  return true;
}

bool ParseWeight(const char* text, Configuration* s) {
  char* end = nullptr;
  s->weight = strtod(text, &end);
  const bool good = end != text && *end == '\0' && s->weight >= protocol::kLeastWeight &&
                    s->weight <= protocol::kMostWeight;
  if (!good) s->weight = 1;
  return good;
}

bool ParsePriority(const char* text, Configuration* s) {
  char* end = nullptr;
  const long priority = strtol(text, &end, 10);
  if (end == text || *end != '\0' || labs(priority) > protocol::kMostPriority) return false;
  s->priority = static_cast<int>(priority);
  return true;
}

bool ParseReportMemory(const char* text, Configuration* s) {
  if (strcmp(text, "physical") == 0) {
    s->report_memory = ReportMemory::kPhysical;
  } else if (strcmp(text, "virtual") == 0) {
    s->report_memory = ReportMemory::kVirtual;
  } else {
    Size size;
    if (!ParseSize(text, &size)) return false;
    s->report_memory = ReportMemory::kSize;
    s->report_size = size;
  }
  return true;
}

bool ParseExecutor(const char* text, Configuration* s) {
  s->real_threads = strcmp(text, "threads") == 0;
  return s->real_threads || strcmp(text, "auto") == 0;
}

bool ParseRecord(const char* text, Configuration* s) {
  bool on = false;
  if (text[0] == '/') return CopyName(text, s->record_folder, sizeof s->record_folder);
  return ParseBool(text, &on) && (s->no_record = !on, true);
}

bool ParseLogLevel(const char* text, Configuration*) {
  static constexpr struct {
    const char* name;
    LogLevel level;
  } kLevels[] = {{"error", LogLevel::kError},
                 {"warn", LogLevel::kWarn},
                 {"info", LogLevel::kInfo},
                 {"debug", LogLevel::kDebug}};
  for (const auto& known : kLevels) {
    if (strcmp(text, known.name) == 0) {
      g_log_level = known.level;
      return true;
    }
  }
  bool on = false;
  if (!ParseBool(text, &on) || on) return false;
  g_log_level = LogLevel::kOff;
  return true;
}

bool ParseExporters(const char* text, Configuration* s) {
  bool on = false;
  if (ParseBool(text, &on)) return !on && (s->exporters_off = true);
  return CopyName(text, s->exporters_file, sizeof s->exporters_file);
}

bool ParseAccessStats(const char* text, Configuration* s) {
  if (ParseBool(text, &s->access_stats)) return true;
  return s->access_stats = CopyName(text, s->access_file, sizeof s->access_file);
}

bool ParseRecompute(const char* text, Configuration* s) {
  bool on = false;
  if (ParseBool(text, &on)) {
    return s->recompute = on ? Recompute::kOn : Recompute::kOff, true;
  }
  if (strcmp(text, "report") == 0) return s->recompute = Recompute::kReport, true;
  return strcmp(text, "shadow") == 0 && (s->recompute = Recompute::kShadow, true);
}

bool ParseLedger(const char* text, Configuration* s) {
  bool on = false;
  if (text[0] == '/') return CopyName(text, s->ledger_file, sizeof s->ledger_file);
  return ParseBool(text, &on) && (s->no_ledger = !on, true);
}

// THE table. Names that another part reads (ATP_SOCKET, ATP_SIM_...) are in that part's table.
constexpr struct {
  const char* name;
  const char* form;
  bool (*parse)(const char*, Configuration*);
} kTable[] = {
    {"ATP_POLICY", "learned, managed or off", ParsePolicy},
    {"ATP_BUDGET", "a size (16GiB, 512M, 80%) or one for each device (0=16GiB,1=24GiB)",
     [](const char* t, Configuration* s) { return ParseDeviceSizes(t, &s->budget); }},
    {"ATP_HOST_BUDGET", "a size (64GiB, 512M, 80%)",
     [](const char* t, Configuration* s) { return ParseSize(t, &s->host_budget); }},
    {"ATP_LEDGER", "off or the absolute name of a file", ParseLedger},
    {"ATP_WAIT", "a duration (30s, 500ms, 2m) or off",
     [](const char* t, Configuration* s) { return ParseDuration(t, &s->wait_ms); }},
    {"ATP_WEIGHT", "a number from 0.01 to 100", ParseWeight},
    {"ATP_PRIORITY", "a whole number from -100 to 100", ParsePriority},
    {"ATP_REPORT_MEMORY", "physical, virtual or a size", ParseReportMemory},
    // Read before main (framework_profile.cc); here only to say that a value is not understood.
    {"ATP_FRAMEWORK", "auto, off, or frameworks of docs/frameworks.md (torch-async)",
     [](const char* t, Configuration*) { return frameworks::IsFrameworkSetting(t); }},
    {"ATP_DISABLE",
     "a list of populate, prefetch, evict, touch, discard, readmostly, slabs, asynctwins, "
     "deepbind, vmm, pools, graphs, demand, heap, reach, sight, moremovers, neighbours",
     [](const char* t, Configuration* s) { return ParseDisable(t, &s->disabled); }},
    {"ATP_NATIVE", "a list of beginnings of library file names (libnccl,libmine)",
     [](const char* t, Configuration* s) {
       return strchr(t, '/') == nullptr && CopyName(t, s->native_sites, sizeof s->native_sites);
     }},
    {"ATP_EXPORTERS", "a file name of less than 512 characters, or off", ParseExporters},
    {"ATP_EXECUTOR", "auto or threads", ParseExecutor},
    {"ATP_LOG", "off, error, warn, info or debug", ParseLogLevel},
    {"ATP_LOG_FILE", "a file name of less than 512 characters",
     [](const char* t, Configuration* s) { return CopyName(t, s->log_file, sizeof s->log_file); }},
    {"ATP_TRACE", "a file name of less than 512 characters",
     [](const char* t, Configuration* s) {
       return CopyName(t, s->trace_file, sizeof s->trace_file);
     }},
    {"ATP_REPORT", "a file name of less than 512 characters",
     [](const char* t, Configuration* s) {
       return CopyName(t, s->report_file, sizeof s->report_file);
     }},
    {"ATP_ACCESS_STATS", "on, off or a file name of less than 512 characters", ParseAccessStats},
    {"ATP_RECOMPUTE", "off, report, shadow or on", ParseRecompute},
    {"ATP_RECORD", "off or the absolute name of a folder", ParseRecord},
};

Configuration settings;
std::once_flag read_once;

void BadValue(const char* name, const char* value, const char* form) {
  ATP_LOG_ERROR("%s=%s is not understood: wanted %s; the default holds", name, value, form);
}

}  // namespace

bool ParseBool(const char* text, bool* value) {
  for (const char* off : {"0", "off", "false", "no", ""}) {
    if (strcasecmp(text, off) == 0) return *value = false, true;
  }
  for (const char* on : {"1", "on", "true", "yes"}) {
    if (strcasecmp(text, on) == 0) return *value = true, true;
  }
  return false;
}

bool ParseDuration(const char* text, uint64_t* ms) {
  static constexpr struct {
    const char* unit;
    uint64_t ms;
  } kUnits[] = {{"", 1000}, {"s", 1000}, {"ms", 1}, {"m", 60'000}};
  constexpr uint64_t kMost = uint64_t{1} << 40;
  bool on = false;
  if (ParseBool(text, &on) && !on) return *ms = 0, true;
  uint64_t value = 0;
  const char* p = text;
  for (; *p >= '0' && *p <= '9' && value < kMost; ++p) {
    value = value * 10 + static_cast<uint64_t>(*p - '0');
  }
  for (const auto& known : kUnits) {
    if (p == text || value >= kMost || strcmp(p, known.unit) != 0) continue;
    return *ms = value * known.ms, true;
  }
  return false;
}

bool ParseSize(const char* text, Size* size) {
  uint64_t value = 0;
  const char* p = text;
  for (; *p >= '0' && *p <= '9'; ++p) {
    const uint64_t digit = static_cast<uint64_t>(*p - '0');
    if (value > (UINT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  if (p == text) return false;
  if (strcmp(p, "%") == 0) {
    if (value > 100) return false;
    *size = {true, true, value};
    return true;
  }
  static constexpr char kPrefixes[] = "KMGT";
  unsigned shift = 0;
  if (*p != '\0' && strchr(kPrefixes, *p) != nullptr) {
    shift = 10 * static_cast<unsigned>(strchr(kPrefixes, *p) - kPrefixes + 1);
    ++p;
    if (strcmp(p, "iB") == 0) p += 2;
  } else if (strcmp(p, "B") == 0) {
    ++p;
  }
  if (*p != '\0' || value > (UINT64_MAX >> shift)) return false;
  *size = {true, false, value << shift};
  return true;
}

bool ParseDeviceSizes(const char* text, DeviceSizes* sizes) {
  DeviceSizes parsed;
  if (strchr(text, '=') == nullptr) {
    if (!ParseSize(text, &parsed.all)) return false;
    *sizes = parsed;
    return true;
  }
  char copy[512];
  if (!CopyName(text, copy, sizeof copy)) return false;
  for (char* item = copy; item != nullptr;) {
    char* next = strchr(item, ',');
    if (next != nullptr) *next++ = '\0';
    char* equals = strchr(item, '=');
    if (equals == nullptr || equals == item) return false;
    *equals = '\0';
    char* end = nullptr;
    const unsigned long device = strtoul(item, &end, 10);
    if (item[0] < '0' || item[0] > '9' || *end != '\0' || device >= kMaxDevices) return false;
    if (!ParseSize(equals + 1, &parsed.each[device])) return false;
    item = next;
  }
  *sizes = parsed;
  return true;
}

bool ParseDisable(const char* text, uint32_t* mask) {
  static constexpr struct {
    const char* name;
    Disable part;
  } kParts[] = {{"populate", kDisablePopulate},     {"prefetch", kDisablePrefetch},
                {"evict", kDisableEvict},           {"touch", kDisableTouch},
                {"discard", kDisableDiscard},       {"readmostly", kDisableReadMostly},
                {"slabs", kDisableSlabs},           {"asynctwins", kDisableAsyncTwins},
                {"deepbind", kDisableDeepbind},     {"vmm", kDisableVmm},
                {"pools", kDisablePools},           {"graphs", kDisableGraphs},
                {"demand", kDisableDemand},         {"heap", kDisableHeap},
                {"reach", kDisableReach},           {"sight", kDisableSight},
                {"moremovers", kDisableMoreMovers}, {"neighbours", kDisableNeighbours}};
  bool on = false;
  if (ParseBool(text, &on) && !on) return *mask = 0, true;
  uint32_t parsed = 0;
  while (true) {
    const size_t length = strcspn(text, ",");
    bool known = false;
    for (const auto& part : kParts) {
      if (strlen(part.name) == length && strncmp(part.name, text, length) == 0) {
        parsed |= part.part;
        known = true;
      }
    }
    if (!known) return false;
    if (text[length] == '\0') break;
    text += length + 1;
  }
  *mask = parsed;
  return true;
}

void ParseSettings(const char* (*lookup)(const char*), Configuration* parsed,
                   void (*bad_value)(const char*, const char*, const char*)) {
  for (const auto& row : kTable) {
    const char* value = lookup(row.name);
    if (value == nullptr) continue;
    // Empty means off where off means something, else "not set".
    if (*value == '\0' && row.parse != ParsePolicy && row.parse != ParseLogLevel) continue;
    if (!row.parse(value, parsed)) bad_value(row.name, value, row.form);
  }
}

bool ExpandFileName(const char* name, char* out, size_t size) {
  size_t used = 0;
  auto add = [&](const char* text) {
    const size_t length = strlen(text);
    if (used + length >= size) return false;
    memcpy(out + used, text, length);
    used += length;
    return true;
  };
  for (const char* p = name; *p != '\0'; ++p) {
    char piece[256] = {*p, '\0'};
    if (*p == '%' && p[1] == 'p') {
      char* end = piece + sizeof piece - 1;  // digits, written from the end: no stdio here
      unsigned pid = static_cast<unsigned>(getpid());
      char* digit = end;
      *digit = '\0';
      do {
        *--digit = static_cast<char>('0' + pid % 10);
        pid /= 10;
      } while (pid != 0);
      memmove(piece, digit, static_cast<size_t>(end - digit) + 1);
      ++p;
    } else if (*p == '%' && p[1] == 'h') {
      if (gethostname(piece, sizeof piece) != 0) strcpy(piece, "host");
      piece[sizeof piece - 1] = '\0';
      ++p;
    } else if (*p == '%' && p[1] == 'r') {
      strcpy(piece, "0");
      for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
        const char* rank = getenv(variable);
        if (rank == nullptr || strlen(rank) >= sizeof piece) continue;
        strcpy(piece, rank);
        break;
      }
      ++p;
    } else if (*p == '%' && p[1] == '%') {
      ++p;
    }
    if (!add(piece)) return false;
  }
  out[used] = '\0';
  return true;
}

void ReadSettings() {
  std::call_once(read_once, [] {
    ParseSettings([](const char* name) -> const char* { return getenv(name); }, &settings,
                  BadValue);
    if (settings.log_file[0] != '\0') OpenLogFile(settings.log_file);
  });
}

const Configuration& Settings() { return settings; }

}  // namespace atp::shim
