// SPDX-License-Identifier: Apache-2.0
// Calls PrintNext of a preload library (next_library.cc). "next_linked" is the same program linked
// with the driver.
#include <dlfcn.h>

int main() {
  const auto print = reinterpret_cast<void (*)()>(dlsym(RTLD_DEFAULT, "PrintNext"));
  if (print == nullptr) return 1;
  print();
  return 0;
}
