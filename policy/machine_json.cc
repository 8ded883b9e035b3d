// SPDX-License-Identifier: Apache-2.0
#include "policy/machine_json.h"

#include <cstdio>
#include <exception>

#include "policy/json_fields.h"

namespace atp::policy {
namespace {

constexpr const char* kFormat = "atp-machine";
constexpr uint64_t kVersion = 1;
// No link and no driver call is beyond these.
constexpr double kMostRate = 1e15, kMostMicroseconds = 1e9;

struct Row {
  const char* name;
  double MeasuredMachine::*value;
  const char* simulated;  // the same in ATP_SIM_SET
};
constexpr Row kRows[] = {
    {"prefetch_call_us", &MeasuredMachine::prefetch_call_us, "prefetch_call"},
    {"prefetch_block_us", &MeasuredMachine::prefetch_block_us, "prefetch_block"},
    {"prefetch_touch_us", &MeasuredMachine::prefetch_touch_us, "prefetch_touch"},
    {"host_map_us", &MeasuredMachine::host_map_us, "host_map"},
    {"host_unmap_us", &MeasuredMachine::host_unmap_us, "host_unmap"},
    {"fault_batch_us", &MeasuredMachine::fault_batch_us, "fault_batch"},
    {"fault_us", &MeasuredMachine::fault_us, "fault"},
    {"fault_block_us", &MeasuredMachine::fault_block_us, "block_service"},
};

struct Rate {
  const char* name;
  double LinkRates::*value;
  const char* simulated;
};
constexpr Rate kRates[] = {{"h2d_bytes_per_s", &LinkRates::h2d, "h2d"},
                           {"d2h_bytes_per_s", &LinkRates::d2h, "d2h"},
                           {"duplex_h2d_bytes_per_s", &LinkRates::duplex_h2d, "h2d_duplex"},
                           {"duplex_d2h_bytes_per_s", &LinkRates::duplex_d2h, "d2h_duplex"}};

double NumberUpTo(const Fields& fields, const char* name, double most) {
  const double value = fields.NumberOr(name, 0);
  if (value > most) fields.Fail(name, "is more than any machine has");
  return value;
}

MeasuredMachine MachineFrom(const Fields& fields) {
  if (fields.String("format") != kFormat) fields.Fail("format", "is not \"atp-machine\"");
  if (fields.Count("version", 1u << 20) != kVersion) fields.Fail("version", "is not 1");
  MeasuredMachine machine;
  machine.device = fields.StringOr("device", "");
  machine.device_bytes = fields.CountOr("device_bytes", kMostBytes, 0);
  machine.driver = static_cast<int>(fields.CountOr("driver", 1u << 30, 0));
  for (const Rate& rate : kRates) {
    machine.link.*rate.value = NumberUpTo(fields, rate.name, kMostRate);
  }
  if (machine.link.h2d <= 0) fields.Fail("h2d_bytes_per_s", "must be more than 0");
  if (machine.link.d2h <= 0) fields.Fail("d2h_bytes_per_s", "must be more than 0");
  if ((machine.link.duplex_h2d > 0) != (machine.link.duplex_d2h > 0)) {
    fields.Fail("duplex_h2d_bytes_per_s", "comes with duplex_d2h_bytes_per_s only");
  }
  for (const Row& row : kRows) machine.*row.value = NumberUpTo(fields, row.name, kMostMicroseconds);
  return machine;
}

}  // namespace

bool ReadMachine(std::string_view text, MeasuredMachine* machine, std::string* error) {
  try {
    const Fields::Json object = Fields::Json::parse(text);
    if (!object.is_object()) throw FieldError{"no JSON object"};
    *machine = MachineFrom(Fields(1, object));
    return true;
  } catch (const FieldError& wrong) {
    *error = wrong.text;
  } catch (const nlohmann::json::exception& wrong) {
    *error = std::string("no JSON: ") + wrong.what();
  }
  return false;
}

std::string WriteMachine(const MeasuredMachine& machine) {
  Fields::Json json = {{"format", kFormat},
                       {"version", kVersion},
                       {"device", machine.device},
                       {"device_bytes", machine.device_bytes},
                       {"driver", machine.driver}};
  for (const Rate& rate : kRates) json[rate.name] = machine.link.*rate.value;
  for (const Row& row : kRows) json[row.name] = machine.*row.value;
  return json.dump(2, ' ', false, Fields::Json::error_handler_t::replace) + "\n";
}

void UseMachine(const MeasuredMachine& machine, Trace* trace) {
  trace->link = machine.link;
  if (trace->device_bytes == 0) trace->device_bytes = machine.device_bytes;
}

void UseMachine(const MeasuredMachine& machine, DriverCosts* costs) {
  constexpr double kSecond = 1e6;
  if (machine.prefetch_block_us > 0) costs->move_seconds = machine.prefetch_block_us / kSecond;
  if (machine.fault_batch_us > 0) costs->batch_seconds = machine.fault_batch_us / kSecond;
  if (machine.fault_block_us > 0) {
    // As the model counts: a block in a batch, with the faults that it takes.
    costs->fault_seconds =
        (machine.fault_block_us + costs->faults_per_block_with_prefetch * machine.fault_us) /
        kSecond;
  }
}

std::string SimulatedCosts(const MeasuredMachine& machine) {
  std::string text;
  const auto add = [&](const char* name, double value) {
    char item[64];
    std::snprintf(item, sizeof item, "%s%s=%.6g", text.empty() ? "" : ",", name, value);
    text += item;
  };
  for (const Rate& rate : kRates) {
    if (machine.link.*rate.value > 0) add(rate.simulated, machine.link.*rate.value / 1e9);
  }
  for (const Row& row : kRows) {
    if (machine.*row.value > 0) add(row.simulated, machine.*row.value);
  }
  // Measured as one.
  if (machine.fault_batch_us > 0) add("replay", 0);
  return text;
}

}  // namespace atp::policy
