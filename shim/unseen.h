// SPDX-License-Identifier: Apache-2.0
// Functions of the driver that allocate or touch device memory, or launch work that does, and that
// are not hooked by decision (docs/hooks.md): they work as without us, and nothing of them is seen.
// For the report, which says whether a program asks for any of them. Any thread, no heap.
#pragma once

namespace atp::shim {

bool IsUnseen(const char* symbol);
void NoteUnseenLookup(const char* symbol);  // by dlsym; a name that is none of them is nothing
// Calls visit(symbol, context) for each that was looked up.
void ForEachUnseenLookup(void (*visit)(const char* symbol, void* context), void* context);

}  // namespace atp::shim
