// SPDX-License-Identifier: Apache-2.0
#include "cli/memory.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/daemon_client.h"
#include "cli/error.h"
#include "cli/run_records.h"
#include "protocol/learned.h"

namespace atp::cli {
namespace {

using protocol::Message;
using protocol::MessageKind;

struct MemoryOptions {
  std::string socket, file;
  std::vector<uint64_t> workloads;
  bool all = false, json = false;
};

// An exported file: this line, then for each workload its length in 8 bytes, lowest first, and what
// the daemon keeps.
constexpr char kMagic[] = "ATP LEARNED 1\n";

DaemonAnswer Ask(const MemoryOptions& options, MessageKind kind, uint64_t number) {
  Message message;
  message.kind = kind;
  message.number = number;
  return AskDaemon(options.socket, message);
}

std::vector<uint64_t> AllWorkloads(const MemoryOptions& options) {
  const DaemonAnswer answer = Ask(options, MessageKind::kStatus, 0);
  if (answer.bodies.size() != 1) throw CommandError(1, "the answer of atpd is empty");
  const auto status = nlohmann::json::parse(answer.bodies[0].begin(), answer.bodies[0].end());
  std::vector<uint64_t> ids;
  for (const auto& workload : status["workloads"]) ids.push_back(workload["id"]);
  return ids;
}

void Say(const MemoryOptions& options, const char* what, uint64_t count) {
  if (options.json) {
    std::cout << nlohmann::json{{what, count}}.dump() << "\n";
  } else {
    std::cout << count << " workloads " << what << "\n";
  }
}

void Forget(const MemoryOptions& options) {
  if (options.all != options.workloads.empty()) {
    throw CommandError(2, "name workloads (atp status shows their numbers), or --all");
  }
  uint64_t forgotten = 0;
  if (options.all) forgotten = Ask(options, MessageKind::kForget, 0).number;
  for (const uint64_t id : options.workloads) {
    if (id == 0) throw CommandError(2, "workloads are numbered from 1");
    const uint64_t gone = Ask(options, MessageKind::kForget, id).number;
    if (gone == 0) throw CommandError(1, "there is no workload " + std::to_string(id));
    forgotten += gone;
  }
  Say(options, "forgotten", forgotten);
}

void Export(const MemoryOptions& options) {
  std::string text = kMagic;
  const std::vector<uint64_t> ids =
      options.workloads.empty() ? AllWorkloads(options) : options.workloads;
  for (const uint64_t id : ids) {
    const DaemonAnswer answer = Ask(options, MessageKind::kExport, id);
    if (answer.bodies.size() != 1) throw CommandError(1, "the answer of atpd is empty");
    const std::vector<uint8_t>& bytes = answer.bodies[0];
    for (unsigned i = 0; i < 8; ++i) text += static_cast<char>(bytes.size() >> (8 * i) & 0xff);
    text.append(bytes.begin(), bytes.end());
  }
  if (!WritePrivately(options.file, text)) {
    throw CommandError(1, options.file + ": " + std::strerror(errno));
  }
  Say(options, "exported", ids.size());
}

// All of the file is read before any of it is told.
std::vector<std::vector<uint8_t>> ReadExport(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw CommandError(1, file + ": " + std::strerror(errno));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  constexpr size_t kHead = sizeof kMagic - 1;
  if (text.compare(0, kHead, kMagic) != 0) throw CommandError(1, file + ": not an export");
  std::vector<std::vector<uint8_t>> all;
  for (size_t at = kHead; at < text.size();) {
    uint64_t length = 0;
    if (text.size() - at < 8) throw CommandError(1, file + ": it ends too early");
    for (unsigned i = 0; i < 8; ++i) {
      length |= uint64_t{static_cast<unsigned char>(text[at + i])} << (8 * i);
    }
    at += 8;
    if (length > text.size() - at) throw CommandError(1, file + ": it ends too early");
    all.emplace_back(text.begin() + static_cast<ptrdiff_t>(at),
                     text.begin() + static_cast<ptrdiff_t>(at + length));
    protocol::Learned learned;
    std::string error;
    if (!protocol::Read(all.back(), &learned, &error)) {
      throw CommandError(1, file + ": workload " + std::to_string(all.size()) + " is " + error);
    }
    at += length;
  }
  return all;
}

void Import(const MemoryOptions& options) {
  const auto all = ReadExport(options.file);
  for (const std::vector<uint8_t>& bytes : all) {
    Message message;
    message.kind = MessageKind::kTell;
    message.text = "import";
    AskDaemon(options.socket, message, &bytes);
  }
  Say(options, "imported", all.size());
}

CLI::App* Add(CLI::App& app, const char* name, const char* help,
              const std::shared_ptr<MemoryOptions>& options, void (*run)(const MemoryOptions&)) {
  CLI::App* command = app.add_subcommand(name, help);
  command->add_option("--socket", options->socket, "Of the daemon (default: where shims look)");
  command->add_flag("--json", options->json, "Print the figure as JSON on stdout");
  command->footer("Exit code: 0 done; 1 no daemon, or it refuses; 2 usage.");
  command->callback([options, run] { run(*options); });
  return command;
}

}  // namespace

void AddMemoryCommands(CLI::App& app) {
  const auto forget = std::make_shared<MemoryOptions>();
  CLI::App* command = Add(app, "forget", "The daemon forgets workloads.", forget, Forget);
  command->add_option("WORKLOAD", forget->workloads, "Numbers, as atp status shows them");
  command->add_flag("--all", forget->all, "All that are yours");

  const auto out = std::make_shared<MemoryOptions>();
  command = Add(app, "export", "Writes what the daemon remembers to a file.", out, Export);
  command->add_option("FILE", out->file, "For another machine's daemon")->required();
  command->add_option("WORKLOAD", out->workloads, "Numbers (default: all that are yours)");

  const auto in = std::make_shared<MemoryOptions>();
  command =
      Add(app, "import", "The daemon remembers what a file from atp export holds.", in, Import);
  command->add_option("FILE", in->file, "As atp export has written it")->required();
}

}  // namespace atp::cli
