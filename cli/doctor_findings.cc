// SPDX-License-Identifier: Apache-2.0
// What the doctor concludes from what was found. Pure: no process, no file.
#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "cli/doctor.h"
#include "cli/size.h"

namespace atp::cli {
namespace {

using Json = nlohmann::ordered_json;

// As in `"small": "..."`: how the shim's report names it, and how we say it.
const std::pair<const char*, const char*> kWhyPlain[] = {
    {"small", "small allocations, which cost less as plain memory"},
    {"capture", "allocated while a stream was capturing"},
    {"device", "on a device that cannot be served"},
    {"refused", "the driver gave no managed memory"},
    {"pool", "of a pool made for export, or of another device"},
    {"range", "address ranges or memory with properties that managed memory cannot have"},
    {"exporter", "allocated by a library that exports its memory (ATP_NATIVE)"},
    {"remembered",
     "allocated by a library whose export was refused before (ATP_EXPORTERS: without its line "
     "there "
     "it is managed again)"},
    {"turned",
     "until then managed: streams write or await values there, or another device has a handle"},
    {"switched_off", "switched off by ATP_DISABLE, or after trouble inside the shim"}};

const std::pair<const char*, const char*> kLookupWays[] = {
    {"dlsym_handle", "dlsym on a handle"},
    {"dlsym_default", "dlsym on RTLD_DEFAULT"},
    {"get_proc_address", "cuGetProcAddress"},
    {"get_proc_address_v2", "cuGetProcAddress_v2"}};

uint64_t Number(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_number() ? object[key].get<uint64_t>() : 0;
}

void AddNumbers(const Json& from, Json* to) {
  for (const auto& [key, value] : from.items()) {
    (*to)[key] = Number(*to, key.c_str()) + value.get<uint64_t>();
  }
}

std::string Version(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void SayDriver(const Json& driver, std::ostringstream* out) {
  *out << "driver        " << driver["library"].get<std::string>();
  if (!driver["loaded"]) {
    *out << ": not found\n";
    return;
  }
  *out << ", CUDA " << driver["version"].get<std::string>() << "\n";
}

void SayDevice(const Json& device, std::ostringstream* out) {
  *out << "device " << device["device"] << "      " << device["name"].get<std::string>() << ", "
       << FormatBytes(device["bytes"]) << ", sm_" << device["compute_capability"].get<std::string>()
       << (device["mig"] ? ", a MIG slice" : "") << ": "
       << (device["served"] ? "served" : "not served") << "\n  "
       << (device["managed"] ? "managed memory" : "no managed memory") << ", "
       << (device["concurrent_managed_access"] ? "" : "no ")
       << "concurrent access of host and device to it, "
       << (device["coherent"] ? "coherent" : "not coherent") << " with host memory\n";
}

void SayFramework(const Json& framework, std::ostringstream* out) {
  const bool installed = framework["recognised_by"] == "installed";
  *out << (installed ? "installed     " : "framework     ") << framework["name"].get<std::string>()
       << ": " << framework["memory"].get<std::string>() << "\n";
  for (const auto& [name, value] : framework["sets"].items()) {
    *out << "  its profile sets " << name << "=" << value.get<std::string>() << "\n";
  }
  if (framework["sets"].empty()) *out << "  its profile sets nothing";
  if (framework.contains("decided_by")) {
    *out << ", because " << framework["decided_by"].get<std::string>() << " is there";
  }
  if (framework["sets"].empty()) *out << "\n";
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Who asks is known by the place of the call. What somebody asks the runtime for
// (cudaGetDriverEntryPoint) comes from there, as its own look-ups do.
void SayLookups(const Json& program, std::ostringstream* out) {
  for (const auto& [key, words] : kLookupWays) {
    const uint64_t count = Number(program["lookups"], key);
    if (count == 0) continue;
    *out << "looks up      " << count << " functions by " << words << "\n";
    for (const Json& site : program["lookup_sites"]) {
      if (site["way"] != key) continue;
      const std::string name = BaseName(site["object"]);
      *out << "  " << site["count"] << " from " << name;
      if (name.rfind("libcudart", 0) == 0) *out << ", the CUDA runtime";
      *out << " (places in its code: " << site["places"] << ")\n";
    }
  }
  for (const Json& entry : program["runtime_entries"]) {
    *out << "looks up      through the runtime: " << BaseName(entry["object"]) << " links "
         << entry["symbol"].get<std::string>() << "\n";
  }
  for (const Json& site : program["lookup_sites"]) {
    if (site["way"] != "runtime_entry") continue;
    *out << "looks up      through the runtime: " << BaseName(site["object"])
         << " finds cudaGetDriverEntryPoint by dlsym\n";
  }
}

void SayProgram(const Json& program, std::ostringstream* out) {
  *out << "program       " << program["file"].get<std::string>();
  if (program.contains("exit_code")) *out << ", ended with " << program["exit_code"];
  *out << "\n";
  for (const Json& framework : program.value("frameworks", Json::array())) {
    SayFramework(framework, out);
  }
  if (!program.contains("hooks")) return;
  SayLookups(program, out);
  std::map<std::string, int> linked;
  for (const Json& import : program["linked"]) ++linked[import["object"]];
  for (const auto& [object, count] : linked) {
    *out << "links         " << count << " functions: " << object << "\n";
  }
  for (const auto& [symbol, calls] : program["hooks"].items()) {
    *out << "hook          " << symbol << ": " << calls << " calls\n";
  }
  if (const uint64_t count = Number(program["own_managed"], "count")) {
    *out << "its own       " << count << " allocations of managed memory, "
         << FormatBytes(program["own_managed"]["bytes"]) << ": left to the program\n";
  }
  for (const auto& [why, words] : kWhyPlain) {
    if (!program["native"].contains(why)) continue;
    const Json& entry = program["native"][why];
    *out << "stays plain   " << entry["count"] << " allocations, " << FormatBytes(entry["bytes"])
         << ": " << words << "\n";
  }
}

// One entry for each object and way: how many look-ups, from how many places in its code.
void AddLookupSites(const Json& sites, Json* to) {
  for (const Json& site : sites) {
    auto same = std::find_if(to->begin(), to->end(), [&](const Json& known) {
      return known["object"] == site["object"] && known["way"] == site["way"];
    });
    if (same == to->end()) {
      to->push_back(
          {{"object", site["object"]}, {"way", site["way"]}, {"count", 0}, {"places", 0}});
      same = to->end() - 1;
    }
    (*same)["count"] = Number(*same, "count") + Number(site, "count");
    (*same)["places"] = Number(*same, "places") + 1;
  }
}

}  // namespace

Json DescribeDriver(const std::string& library, const DriverProbe& probe) {
  Json driver = {{"library", library},
                 {"loaded", probe.loaded},
                 {"status", probe.status},
                 {"version", Version(probe.version)},
                 {"supported", probe.version >= kOldestDriver},
                 {"devices", Json::array()}};
  for (size_t i = 0; i < probe.cards.size(); ++i) {
    const Card& card = probe.cards[i];
    driver["devices"].push_back(
        {{"device", i},
         {"name", card.name},
         {"bytes", card.bytes},
         {"compute_capability", std::to_string(card.major) + std::to_string(card.minor)},
         {"managed", card.managed},
         {"concurrent_managed_access", card.concurrent},
         {"coherent", card.coherent},
         {"mig", card.name.find("MIG ") != std::string::npos},
         {"served", card.managed && card.concurrent && !card.coherent}});
  }
  return driver;
}

Json DescribeFrameworks(const std::vector<frameworks::Recognised>& all) {
  static constexpr const char* kHow[] = {"ATP_FRAMEWORK", "command", "installed"};
  Json list = Json::array();
  for (const frameworks::Recognised& found : all) {
    Json framework = {{"key", found.profile->key},
                      {"name", found.profile->name},
                      {"memory", found.profile->memory},
                      {"recognised_by", kHow[static_cast<size_t>(found.how)]},
                      {"sets", Json::object()}};
    for (const frameworks::Variable& variable : found.set) {
      framework["sets"][variable.name] = variable.value;
    }
    if (found.decided_by != nullptr) framework["decided_by"] = found.decided_by;
    list.push_back(std::move(framework));
  }
  return list;
}

Json MergeReports(const std::vector<Json>& reports) {
  Json merged = {{"processes", reports.size()},
                 {"active", false},
                 {"hooks", Json::object()},
                 {"lookups", Json::object()},
                 {"linked", Json::array()},
                 {"native", Json::object()},
                 {"runtime_entries", Json::array()},
                 {"lookup_sites", Json::array()},
                 {"unseen", Json::array()},
                 {"own_managed", Json::object()},
                 {"refused_exports", 0},
                 {"asked_before_allocating", false},
                 {"ever_managed", false},
                 {"namespaces", 1}};
  for (const Json& report : reports) {
    merged["active"] = merged["active"].get<bool>() || report["active"].get<bool>();
    AddNumbers(report["hooks"], &merged["hooks"]);
    AddNumbers(report["lookups"], &merged["lookups"]);
    AddLookupSites(report["lookup_sites"], &merged["lookup_sites"]);
    for (const char* list : {"linked", "unseen", "runtime_entries"}) {
      for (const Json& import : report[list]) merged[list].push_back(import);
    }
    AddNumbers(report["own_managed"], &merged["own_managed"]);
    for (const auto& [why, entry] : report["native"].items()) {
      AddNumbers(entry, &merged["native"][why]);
    }
    merged["refused_exports"] =
        Number(merged, "refused_exports") + Number(report, "refused_exports");
    for (const char* flag : {"asked_before_allocating"}) {
      merged[flag] = merged[flag].get<bool>() || report[flag].get<bool>();
    }
    for (const Json& device : report["devices"]) {
      merged["ever_managed"] =
          merged["ever_managed"].get<bool>() || device["ever_managed"].get<bool>();
    }
    merged["namespaces"] = std::max(Number(merged, "namespaces"), Number(report, "namespaces"));
  }
  return merged;
}

std::vector<std::string> WhyNotServed(const Json& findings) {
  std::vector<std::string> reasons;
  const Json& driver = findings["driver"];
  if (!driver["loaded"]) {
    return {"there is no CUDA driver: " + driver["library"].get<std::string>() +
            " was not found; install NVIDIA's driver, or use --sim PROFILE"};
  }
  if (driver["status"] != 0 || driver["devices"].empty()) {
    reasons.push_back("the driver finds no usable device (cuInit answers " +
                      driver["status"].dump() + "); check nvidia-smi");
  }
  if (!driver["supported"]) {
    reasons.push_back("the driver is of CUDA " + driver["version"].get<std::string>() +
                      ", older than 12.0; update it");
  }
  bool any = driver["devices"].empty();
  for (const Json& device : driver["devices"]) any = any || device["served"].get<bool>();
  if (!any) {
    reasons.push_back(
        "no device has concurrent access to managed memory without being coherent with the host: "
        "memory stays where the driver puts it");
  }
  if (findings["policy"] == "off") reasons.push_back("ATP_POLICY is off; unset it");
  if (!findings["shim_loads"]) {
    reasons.push_back("the shim cannot be loaded here: " +
                      findings["shim_error"].get<std::string>());
  }
  if (!findings.contains("program")) return reasons;
  const Json& program = findings["program"];
  if (program["unservable"] != "") reasons.push_back(program["unservable"]);
  if (!program.contains("hooks")) return reasons;
  if (!program["active"]) {
    reasons.push_back(
        "no process of the program that ended by itself called a hooked function of the driver: it "
        "does not use CUDA, or ended before, or by a signal or _exit");
  } else if (!program["ever_managed"]) {
    reasons.push_back(
        "the program uses the driver, but none of its memory could be managed: what stays plain, "
        "and why, is above");
  }
  if (Number(program["lookups"], "second_driver") != 0) {
    reasons.push_back(
        "the program opens a second copy of the driver, whose functions are not intercepted; let "
        "it "
        "find one copy only (LD_LIBRARY_PATH, DT_RPATH)");
  }
  return reasons;
}

std::vector<std::string> Advice(const Json& findings) {
  std::vector<std::string> advice;
  for (const Json& other : findings["other_preloads"]) {
    advice.push_back("another library is preloaded: " + other.get<std::string>());
  }
  if (!findings.contains("program") || !findings["program"].contains("hooks")) return advice;
  const Json& program = findings["program"];
  if (program["asked_before_allocating"]) {
    advice.push_back(
        "it asks how much memory is free before it allocates, and may take only that much: with "
        "ATP_REPORT_MEMORY=virtual it sees the host's share too");
  }
  if (Number(program, "namespaces") > 1) {
    advice.push_back(
        "it loads libraries into a namespace of their own (dlmopen), which preloaded libraries are "
        "not in: calls from there are not intercepted");
  }
  if (!program["unseen"].empty()) {
    std::map<std::string, std::set<std::string>> by_object;
    for (const Json& import : program["unseen"]) {
      by_object[import["object"]].insert(import["symbol"].get<std::string>());
    }
    for (const auto& [object, symbols] : by_object) {
      std::string list;
      for (const std::string& symbol : symbols) list += (list.empty() ? "" : ", ") + symbol;
      advice.push_back((object == "(dlsym)" ? "it looks up" : object + " links") +
                       " functions that are not intercepted, so that what they allocate or touch "
                       "is not seen: " +
                       list);
    }
  }
  if (Number(program, "refused_exports") != 0) {
    advice.push_back(
        "it exports memory that is managed, or uses it in another way that the driver refuses: "
        "name the library that does so in ATP_NATIVE (the log says which)");
  }
  return advice;
}

std::string AsText(const Json& findings) {
  std::ostringstream out;
  SayDriver(findings["driver"], &out);
  for (const Json& device : findings["driver"]["devices"]) SayDevice(device, &out);
  out << "host memory   " << FormatBytes(findings["host_available_bytes"]) << " available";
  if (findings.value("host_limited_by", "") != "") out << ", by the limit of the control group";
  out << "\n";
  if (findings.contains("program")) SayProgram(findings["program"], &out);
  for (const Json& line : findings["advice"])
    out << "note          " << line.get<std::string>() << "\n";
  for (const Json& line : findings["reasons"]) {
    out << "not served    " << line.get<std::string>() << "\n";
  }
  if (findings["served"]) {
    out << (findings.contains("program") ? "The program is served.\n"
                                         : "Programs can be served here.\n");
  }
  return out.str();
}

}  // namespace atp::cli
