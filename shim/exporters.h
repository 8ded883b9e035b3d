// SPDX-License-Identifier: Apache-2.0
// Libraries that have exported memory of ours and were refused: what they allocate from then on is
// plain while there is room (placement.cc), so that the next export works. Remembered by the name
// of their file, in this process and, in a file of the user's, for the runs to come: ATP_EXPORTERS,
// else atpshim/exporters in $XDG_STATE_HOME or ~/.local/state; one name a line. Any thread. A file
// that cannot be read or written costs the memory of it only.
#pragma once

#include <cstddef>

namespace atp::shim {

bool IsRemembered(const char* name);
// False: nothing new: it was already, such a name tells nothing (libffi calls for everybody), or
// remembering is switched off.
bool Remember(const char* name);
void ResetExportersAfterFork();

// The file's name into `out`, from the environment `lookup`; false: there is none. Public for
// tests.
bool ExportersFile(const char* (*lookup)(const char*), char* out, size_t size);

}  // namespace atp::shim
