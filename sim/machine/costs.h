// SPDX-License-Identifier: Apache-2.0
// The costs of one profile, read from costs.def and changed by ATP_SIM_SET.
//
// Made once by Machine::Create, then constant. Errors name the value and list what is allowed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "sim/machine/machine.h"

namespace atp::sim {

// The types of the units of costs.def: integers in the model's own units, except for ratios.
using CostUs = Time;       // picoseconds
using CostGbps = int64_t;  // bytes per second
using CostRatio = double;
using CostCount = int64_t;
using CostMib = int64_t;  // bytes

inline constexpr int kProfiles = 8;

struct Costs {
#define ATP_COST_TYPE_us CostUs
#define ATP_COST_TYPE_gbps CostGbps
#define ATP_COST_TYPE_ratio CostRatio
#define ATP_COST_TYPE_count CostCount
#define ATP_COST_TYPE_mib CostMib
#define COST(name, unit, ...) ATP_COST_TYPE_##unit name{};
#include "sim/machine/costs.def"
#undef COST
#undef ATP_COST_TYPE_us
#undef ATP_COST_TYPE_gbps
#undef ATP_COST_TYPE_ratio
#undef ATP_COST_TYPE_count
#undef ATP_COST_TYPE_mib
};

// A row of costs.def.
struct CostRow {
  const char* name;
  const char* unit;
  const char* description;
  const char* source;
  double values[kProfiles];
};
std::span<const CostRow> CostTable();

// Index of a profile in the columns of costs.def, -1 when there is none of that name.
// `ProfileNames` = "gtx1080, v100-16g, ...".
int ProfileIndex(std::string_view name);
std::string ProfileNames();

Costs ProfileCosts(int profile);
// "name=value,name=value". Returns false and sets `error` on an unknown name, or a value that is no
// number or negative.
bool ApplyOverrides(std::string_view overrides, Costs* costs, std::string* error);
// The time cost of that name, -1 when there is none (or when it is not a time).
Time TimeCost(const Costs& costs, std::string_view name);

}  // namespace atp::sim
