// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/stats.h"

#include <nlohmann/json.hpp>

namespace atp::sim {
namespace {

double Ms(Time time) { return static_cast<double>(time) / static_cast<double>(kMs); }

nlohmann::ordered_json Bytes(const Traffic& traffic) {
  return {{"fault", traffic.fault},
          {"prefetch", traffic.prefetch},
          {"eviction", traffic.eviction},
          {"cpu_fault", traffic.host_fault},
          {"copy_engine_fault", traffic.engine_fault},
          {"copy", traffic.copy},
          {"remote", traffic.remote}};
}

}  // namespace

uint64_t& Traffic::Of(Cause cause) {
  switch (cause) {
    case Cause::kFault:
      return fault;
    case Cause::kPrefetch:
      return prefetch;
    case Cause::kEviction:
      return eviction;
    case Cause::kHostFault:
      return host_fault;
    case Cause::kEngineFault:
      break;
  }
  return engine_fault;
}

std::string ToJson(const Stats& stats, const StatsFrame& frame) {
  nlohmann::ordered_json json;
  json["profile"] = frame.profile;
  auto& virtual_ms = json["virtual_ms"];
  virtual_ms["total"] = Ms(frame.total);
  virtual_ms["streams"] = nlohmann::ordered_json::object();
  for (const auto& [stream, busy] : stats.streams)
    virtual_ms["streams"][std::to_string(stream)] = Ms(busy);
  virtual_ms["kernels"] = nlohmann::ordered_json::object();
  for (const auto& [name, kernel] : stats.kernels) {
    virtual_ms["kernels"][name] = {
        {"count", kernel.count}, {"ms", Ms(kernel.time)}, {"fault_ms", Ms(kernel.fault_time)}};
  }
  json["faults"] = {{"gpu", stats.gpu_faults},
                    {"batches", stats.fault_batches},
                    {"block_services", stats.block_services},
                    {"cpu", stats.host_faults},
                    {"copy_engine", stats.engine_faults}};
  json["bytes"] = {{"h2d", Bytes(stats.to_device)},
                   {"d2h", Bytes(stats.to_host)},
                   {"peer", stats.peer_bytes},
                   {"zeroed_on_device", stats.zeroed_on_device},
                   {"zeroed_on_host", stats.zeroed_on_host},
                   {"discarded_not_copied", stats.discarded_not_copied},
                   {"duplicates_not_copied", stats.duplicates_not_copied}};
  json["evictions"] = stats.evictions;
  json["chunks_taken"] = {{"unused", stats.unused_taken}, {"discarded", stats.discarded_taken}};
  json["touches"] = stats.touches;
  json["deferred_hints"] = stats.deferred_hints;
  json["link_busy_ms"] = {{"h2d", Ms(frame.link_busy[0])}, {"d2h", Ms(frame.link_busy[1])}};
  json["host_bytes"] = stats.host_bytes;
  json["resident_bytes"] = frame.resident_bytes;
  json["discard_violations"] = stats.discard_violations;
  return json.dump(1);
}

}  // namespace atp::sim
