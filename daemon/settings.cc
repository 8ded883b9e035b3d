// SPDX-License-Identifier: Apache-2.0
#include "daemon/settings.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <stdexcept>

#include "policy/machine_json.h"
#include "protocol/message.h"

namespace atp::daemon {
namespace {

constexpr int kGood = -1, kBadSetting = 2;

std::string DefaultSocket(const Lookup& lookup) {
  // The machine's daemon is root's.
  if (geteuid() == 0 && lookup("ATP_SOCKET") == nullptr) return protocol::kMachineSocket;
  const auto paths = protocol::SocketPaths();
  return paths.empty() ? "" : paths.front();
}

// `variable` of the XDG base directories, or its usual place in the home folder; empty: neither.
std::string XdgFolder(const Lookup& lookup, const char* variable, const char* usual) {
  const char* given = lookup(variable);
  if (given != nullptr && given[0] == '/') return given;
  const char* home = lookup("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + usual : "";
}

std::string DefaultStore(const Lookup& lookup) {
  if (geteuid() == 0) return "/var/lib/atp/atpd.db";
  const std::string state = XdgFolder(lookup, "XDG_STATE_HOME", "/.local/state");
  return state.empty() ? "" : state + "/atp/atpd.db";
}

// The machine's, then the user's: of a key in both the latter holds.
std::vector<std::string> UsualFiles(const Lookup& lookup, const WhoAsks& who) {
  std::vector<std::string> files = {who.machine_file};
  const std::string own = XdgFolder(lookup, "XDG_CONFIG_HOME", "/.config");
  if (!who.root && !own.empty()) files.push_back(own + "/atp/atpd.conf");
  std::erase_if(files, [](const std::string& file) { return !std::filesystem::exists(file); });
  return files;
}

bool IsKey(const CLI::App& app, const std::string& key) {
  const CLI::Option* option = app.get_option_no_throw("--" + key);
  return option != nullptr && option->get_configurable();
}

// The lines of a file as arguments.
std::vector<std::string> FromFile(const CLI::App& app, const std::string& file) {
  std::ifstream in(file);
  if (!in) throw CLI::FileError(file + " cannot be read");
  std::vector<std::string> arguments;
  for (const CLI::ConfigItem& item : CLI::ConfigINI().from_config(in)) {
    if (!item.parents.empty() || !IsKey(app, item.name)) {
      throw CLI::ConfigError(file + ": there is no key " + item.fullname());
    }
    if (item.inputs.size() != 1) throw CLI::ConfigError(file + ": " + item.name + " takes a value");
    arguments.push_back("--" + item.name + "=" + item.inputs[0]);
  }
  return arguments;
}

// ATPD_STORE_BYTES for store-bytes, and so on. An empty variable is none.
std::vector<std::string> FromEnvironment(const CLI::App& app, const Lookup& lookup) {
  std::vector<std::string> arguments;
  for (const CLI::Option* option : app.get_options()) {
    const std::string key = option->get_single_name();
    if (!option->get_configurable()) continue;
    std::string variable = "ATPD_" + key;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(std::toupper(c));
    const char* value = lookup(variable.c_str());
    if (value != nullptr && *value != '\0') arguments.push_back("--" + key + "=" + value);
  }
  return arguments;
}

// The file that --config names, which then takes the place of the usual ones.
std::vector<std::string> Files(const std::vector<std::string>& arguments, const Lookup& lookup,
                               const WhoAsks& who) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--config" && i + 1 < arguments.size()) return {arguments[i + 1]};
    if (arguments[i].starts_with("--config=")) return {arguments[i].substr(9)};
  }
  return UsualFiles(lookup, who);
}

void ReadMachineFile(const std::string& file, policy::DriverCosts* costs) {
  std::ifstream in(file, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  policy::MeasuredMachine machine;
  std::string error;
  if (!in || !policy::ReadMachine(text, &machine, &error)) {
    throw CLI::ValidationError("machine", file + ": " + (in ? error : "it cannot be read"));
  }
  *costs = {};
  policy::UseMachine(machine, costs);
}

std::vector<UserLimits> ReadLimits(const std::string& text) {
  std::vector<UserLimits> limits;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, '|');) {
    try {
      limits.push_back(ParseUserLimits(word));
    } catch (const std::invalid_argument& error) {
      throw CLI::ValidationError("job-limits", error.what());
    }
  }
  return limits;
}

struct Given {
  Settings* settings;
  std::string config, tune = "on", job_limits;
  int64_t idle = 10;
  bool foreground = true;
};

void Describe(CLI::App* app, Given* given) {
  Settings* settings = given->settings;
  app->option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app->set_version_flag("--version", "atpd " ATP_VERSION)->configurable(false);
  app->add_option("--config", given->config,
                  "File of settings, instead of the user's and the machine's")
      ->configurable(false);
  app->add_flag("--foreground", given->foreground,
                "Do not leave the terminal; there is no other way")
      ->configurable(false);
  app->add_flag("--check-config", settings->check_config,
                "Read the settings, say what they are, end")
      ->configurable(false);
  app->add_flag("--dump-stats", settings->dump_stats,
                "Print the figures of the daemon that listens")
      ->configurable(false);
  app->add_option("--socket", settings->socket, "Where to listen")->capture_default_str();
  app->add_option("--store", settings->store, "File of what is remembered")->capture_default_str();
  app->add_option("--group", settings->group, "Group that may use the socket besides its owner");
  app->add_option("--metrics", settings->metrics,
                  "Address for Prometheus, 127.0.0.1:9464 (default: none)");
  app->add_option("--store-bytes", settings->limits.bytes, "Most bytes to remember, of all users")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app->add_option("--store-workloads", settings->limits.workloads, "Most workloads of one user")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app->add_option("--tune", given->tune, "Search for better choices in idle time: on or off")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app->add_option("--tune-cpu", settings->tuning.share, "So much of one core at most")
      ->check(CLI::Range(0.01, 1.0))
      ->capture_default_str();
  app->add_option("--tune-idle", given->idle, "Seconds without a client before it begins")
      ->check(CLI::Range(int64_t{0}, int64_t{86400}))
      ->capture_default_str();
  app->add_option("--machine", settings->machine,
                  "File of `atp calibrate`: what workloads are replayed on");
  app->add_option("--job-limits", given->job_limits,
                  "Most that a user's jobs may have of a card: "
                  "USER:budget=SIZE,weight=NUMBER,priority=NUMBER; USER * is everybody else, a | "
                  "stands between several users");
  app->footer(
      "Each setting can also be given as ATPD_KEY in the environment (ATPD_STORE_BYTES), or as key "
      "= "
      "value in a file.\nSIGHUP reads the settings again.\n"
      "Exit code: 0 asked to end, or done; 1 cannot serve; 2 usage, or a bad setting.");
}

}  // namespace

WhoAsks::WhoAsks() : root(geteuid() == 0), machine_file("/etc/atp/atpd.conf") {}

int ReadSettings(const std::vector<std::string>& arguments, const Lookup& lookup,
                 Settings* settings, std::string* shown, const WhoAsks& who) {
  CLI::App app("Remembers what the shim has learned of each program, for its next run.", "atpd");
  *settings = {};
  settings->socket = DefaultSocket(lookup);
  settings->store = DefaultStore(lookup);
  Given given{settings, "", "on", "", settings->tuning.idle.count(), true};
  Describe(&app, &given);
  try {
    std::vector<std::string> all;  // of a setting in several places the last one holds
    for (const std::string& file : Files(arguments, lookup, who)) {
      for (std::string& line : FromFile(app, file)) all.push_back(std::move(line));
    }
    for (std::string& one : FromEnvironment(app, lookup)) all.push_back(std::move(one));
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::reverse(all.begin(), all.end());  // as CLI11 wants them
    app.parse(all);
    settings->tuning.on = given.tune == "on";
    settings->tuning.idle = std::chrono::seconds(given.idle);
    settings->job_limits = ReadLimits(given.job_limits);
    if (!settings->machine.empty()) ReadMachineFile(settings->machine, &settings->tuning.costs);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadSetting;
  }
  if (shown != nullptr) *shown = app.config_to_str(/*default_also=*/true);
  return kGood;
}

}  // namespace atp::daemon
