// SPDX-License-Identifier: Apache-2.0
// The driver's density prefetcher: which pages of a block come along with the faulting ones.
//
// Called by the fault paths only (kernels, copy engines, host). Pure function.
// Source: uvm_perf_prefetch.c in NVIDIA/open-gpu-kernel-modules 595.45.04 (threshold 51 %, scope
// one block, and no regard for memory pressure).
#pragma once

#include "sim/machine/unified/page_mask.h"

namespace atp::sim {

// `faulted` pages of a block whose pages are `valid`, `resident` those already at the destination.
// The answer holds `faulted`, every 64 KiB region with a fault, and for each fault the largest
// power-of-two region with more than `threshold_percent` of its pages resident or faulted.
PageMask ExpandFaults(const PageMask& faulted, const PageMask& resident, const PageMask& valid,
                      int threshold_percent);

}  // namespace atp::sim
