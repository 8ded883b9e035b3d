// SPDX-License-Identifier: Apache-2.0
// What the launches of a period reach from their pointers, by their kernels' PTX (ptx/reach.h).
#pragma once

#include "shim/recorder.h"

namespace atp::shim {

// Gives touches of unknown extent in `period->seen` the offset and bytes that their kernel reaches,
// and will reach in the next `ahead` periods where arguments count on (a cache that fills): then
// `period->grows`. Those of kernels whose PTX is not known, or does not tell, stay as they are. Any
// thread, without the lock of the loop; milliseconds for each kernel of a program's first period,
// less later. Returns for how many launches code had to be run: those that differ in pointers only,
// to managed or to plain memory, reach equally far.
size_t FindReaches(unsigned ahead, Recorder::Period* period);

}  // namespace atp::shim
