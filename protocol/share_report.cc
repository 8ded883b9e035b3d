// SPDX-License-Identifier: Apache-2.0
#include "protocol/share_report.h"

#include "daemon_generated.h"

namespace atp::protocol {
namespace {

constexpr size_t kMostBytes = 16u << 10;
constexpr size_t kMostCommand = 4096;
constexpr size_t kMostProcesses = 256;

std::string Text(const flatbuffers::String* text) { return text != nullptr ? text->str() : ""; }

}  // namespace

std::vector<uint8_t> Write(const ShareReport& r) {
  flatbuffers::FlatBufferBuilder to;
  const auto card = to.CreateString(r.card);
  const auto command = to.CreateString(r.command.substr(0, kMostCommand));
  std::vector<wire::CardProcess> rows;
  if (r.processes.size() <= kMostProcesses) {
    for (const CardProcess& each : r.processes) rows.push_back({each.bytes, each.process, 0});
  }
  const auto processes = to.CreateVectorOfStructs(rows);
  to.Finish(wire::CreateShareReport(to, card, r.card_bytes, r.free_bytes, r.footprint, r.held,
                                    r.least, r.most, r.weight, r.priority, r.waits, command,
                                    processes));
  return {to.GetBufferPointer(), to.GetBufferPointer() + to.GetSize()};
}

bool Read(std::span<const uint8_t> bytes, ShareReport* report, std::string* error) {
  flatbuffers::Verifier verifier(bytes.data(), bytes.size());
  if (bytes.size() > kMostBytes || !verifier.VerifyBuffer<wire::ShareReport>(nullptr)) {
    *error = "no whole report";
    return false;
  }
  const auto& from = *flatbuffers::GetRoot<wire::ShareReport>(bytes.data());
  *report = {Text(from.card()), from.card_bytes(), from.free_bytes(),    from.footprint(),
             from.held(),       from.least(),      from.most(),          from.weight(),
             from.priority(),   from.waits(),      Text(from.command()), {}};
  if (from.processes() != nullptr && from.processes()->size() <= kMostProcesses) {
    for (const wire::CardProcess* each : *from.processes())
      report->processes.push_back({each->bytes(), each->process(), 0});
  }
  const bool sensible = report->weight >= kLeastWeight && report->weight <= kMostWeight &&
                        report->priority >= -kMostPriority && report->priority <= kMostPriority &&
                        !report->card.empty() && report->card_bytes > 0 &&
                        report->card_bytes < uint64_t{1} << 50;
  if (!sensible) *error = "of numbers that make no sense";
  return sensible;
}

}  // namespace atp::protocol
