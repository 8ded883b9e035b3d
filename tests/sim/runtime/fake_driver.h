// SPDX-License-Identifier: Apache-2.0
// What the fake libcuda.so.1 of these tests exports besides cuGetProcAddress_v2. The test finds it
// by dlsym, like the runtime.
#pragma once

extern "C" {
// All look-ups so far, one a line: "via symbol version flags", via = "dlsym" or "12000" (which
// pointer was called).
const char* FakeLookups();
// All driver calls since FakeForget, separated by blanks, without their "cu".
const char* FakeCalls();
void FakeForget();
// The next call of `symbol` (without "cu") answers `result`.
void FakeFailNext(const char* symbol, int result);
}
