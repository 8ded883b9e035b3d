// SPDX-License-Identifier: Apache-2.0
// Where a faulting page goes: the driver's order of rules, first match wins.
//
// Called by the fault paths. Pure. Source: block_select_processor_residency in uvm_va_block.c,
// NVIDIA/open-gpu-kernel-modules 595.45.04. The thrashing hint (its rule 3) is left out: it
// concerns ping-pong between processors only.
#pragma once

#include "sim/machine/unified/block.h"

namespace atp::sim {

struct Fault {
  int processor = kHost;    // who faults: a device, or kHost
  int resident = kNoPlace;  // where the page is
  bool is_write = false;
  bool reaches_resident = false;   // the processor can access the page where it is
  bool reaches_preferred = false;  // and the preferred location
};

struct Residency {
  int place = kHost;
  bool duplicate = false;  // a copy, the source stays valid
  bool operator==(const Residency&) const = default;
};

inline Residency ChooseResidency(const Policy& policy, const Fault& fault) {
  if (policy.read_mostly && !fault.is_write) return {fault.processor, true};
  if (fault.processor == policy.preferred) return {fault.processor, false};
  bool has_preferred = policy.preferred != kNoPlace;
  if (fault.resident == kNoPlace) {
    return {has_preferred && fault.reaches_preferred ? policy.preferred : fault.processor, false};
  }
  bool accessed_by = fault.processor >= 0 && ((policy.accessed_by >> fault.processor) & 1) != 0;
  if (accessed_by && fault.reaches_resident) return {fault.resident, false};
  if (has_preferred && fault.reaches_preferred) return {policy.preferred, false};
  return {fault.processor, false};
}

}  // namespace atp::sim
