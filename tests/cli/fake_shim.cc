// SPDX-License-Identifier: Apache-2.0
// Stands in for libatpshim.so where a test only needs to see that it was loaded.
#include <cstdlib>

__attribute__((constructor)) static void Loaded() { setenv("FAKE_SHIM_LOADED", "yes", 1); }
