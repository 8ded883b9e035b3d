// SPDX-License-Identifier: Apache-2.0
// Libraries that are opened with RTLD_DEEPBIND bind dlsym and the driver's functions past every
// preload library. After such a dlopen the new objects' import slots for dlsym, dlopen and hooked
// symbols, and the addresses of these in their data, are pointed at ours; everything else of deep
// binding stays as the caller wanted it. Not
// reached: look-ups made by the constructors of these libraries, which run before dlopen returns.
#pragma once

#include <link.h>

namespace atp::shim {

// The objects behind `last` in the list of loaded objects, up to its end. Public for tests.
void PatchObjectsAfter(link_map* last);

}  // namespace atp::shim
