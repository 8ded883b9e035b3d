// SPDX-License-Identifier: Apache-2.0
// Linked with the driver: prints which object serves each of its functions when a program calls
// them by name.
//   direct  symbol  object:symbol
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define EXPORT(symbol) extern "C" int symbol();
#define ROW(name, version, flags, symbol)
#include TABLE_FILE
#undef EXPORT

int main() {
  struct {
    const char* name;
    void* function;
  } const kFunctions[] = {
#define EXPORT(symbol) {#symbol, reinterpret_cast<void*>(&symbol)},
#include TABLE_FILE
#undef EXPORT
#undef ROW
  };
  for (const auto& row : kFunctions) {
    Dl_info info = {};
    if (dladdr(row.function, &info) == 0) return 1;
    const char* slash = strrchr(info.dli_fname, '/');
    printf("direct\t%s\t%s:%s\n", row.name, slash != nullptr ? slash + 1 : info.dli_fname,
           info.dli_sname != nullptr ? info.dli_sname : "-");
  }
  return 0;
}
