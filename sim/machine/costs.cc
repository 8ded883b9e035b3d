// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/costs.h"

#include <cmath>
#include <cstdlib>

namespace atp::sim {
namespace {

constexpr std::string_view kProfileNames[kProfiles] = {"gtx1080",  "v100-16g", "rtx3090", "rtx5090",
                                                       "a100-40g", "h100",     "h200",    "tiny"};

constexpr CostRow kRows[] = {
#define COST(name, unit, description, source, ...) \
  {#name, #unit, description, source, {__VA_ARGS__}},
#include "sim/machine/costs.def"
#undef COST
};

// Stores a value given in the unit of the table as the model keeps it.
void Store_us(double value, Time* field) {
  *field = std::llround(value * static_cast<double>(kUs));
}
void Store_gbps(double value, int64_t* field) { *field = std::llround(value * 1e9); }
void Store_ratio(double value, double* field) { *field = value; }
void Store_count(double value, int64_t* field) { *field = std::llround(value); }
void Store_mib(double value, int64_t* field) { *field = std::llround(value * (1 << 20)); }

bool Store(std::string_view name, double value, Costs* costs) {
#define COST(field, unit, ...)          \
  if (name == #field) {                 \
    Store_##unit(value, &costs->field); \
    return true;                        \
  }
#include "sim/machine/costs.def"
#undef COST
  return false;
}

std::string AllNames() {
  std::string names;
  for (const CostRow& row : kRows) {
    if (!names.empty()) names += ", ";
    names += row.name;
  }
  return names;
}

bool IsRate(std::string_view name) {
  for (const CostRow& row : kRows) {
    if (name == row.name) return std::string_view(row.unit) == "gbps";
  }
  return false;
}

}  // namespace

std::span<const CostRow> CostTable() { return kRows; }

int ProfileIndex(std::string_view name) {
  for (int i = 0; i < kProfiles; ++i) {
    if (kProfileNames[i] == name) return i;
  }
  return -1;
}

std::string ProfileNames() {
  std::string names;
  for (std::string_view name : kProfileNames) {
    if (!names.empty()) names += ", ";
    names += name;
  }
  return names;
}

Costs ProfileCosts(int profile) {
  Costs costs;
  for (const CostRow& row : kRows) Store(row.name, row.values[profile], &costs);
  return costs;
}

bool ApplyOverrides(std::string_view overrides, Costs* costs, std::string* error) {
  while (!overrides.empty()) {
    size_t comma = overrides.find(',');
    std::string item(overrides.substr(0, comma));
    overrides = comma == std::string_view::npos ? std::string_view() : overrides.substr(comma + 1);
    size_t equals = item.find('=');
    if (equals == std::string::npos) {
      *error = "simulated costs: \"" + item + "\" is not name=value";
      return false;
    }
    std::string name = item.substr(0, equals), text = item.substr(equals + 1);
    char* end = nullptr;
    double value = std::strtod(text.c_str(), &end);
    bool is_number =
        !text.empty() && *end == '\0' && std::isfinite(value) && value >= 0 && value <= 1e9;
    if (!is_number || (value == 0 && IsRate(name))) {
      *error = "simulated costs: \"" + text + "\" is not a value for " + name +
               " (a decimal number, not negative, rates above zero)";
      return false;
    }
    if (!Store(name, value, costs)) {
      *error = "simulated costs: there is no cost \"" + name + "\"; names: " + AllNames();
      return false;
    }
  }
  return true;
}

Time TimeCost(const Costs& costs, std::string_view name) {
#define ATP_TIME_us(field) \
  if (name == #field) return costs.field;
#define ATP_TIME_gbps(field)
#define ATP_TIME_ratio(field)
#define ATP_TIME_count(field)
#define ATP_TIME_mib(field)
#define COST(field, unit, ...) ATP_TIME_##unit(field)
#include "sim/machine/costs.def"
#undef COST
#undef ATP_TIME_us
#undef ATP_TIME_gbps
#undef ATP_TIME_ratio
#undef ATP_TIME_count
#undef ATP_TIME_mib
  return -1;
}

}  // namespace atp::sim
