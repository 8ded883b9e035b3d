// SPDX-License-Identifier: Apache-2.0
// Linked with the driver: prints which object serves each of its functions when a program calls
// them by name, and when it has their addresses in a table.
//   called|table  symbol  object:symbol
// A program, or with DIRECT_LIBRARY a library that exports this as Probe.
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define EXPORT(symbol) extern "C" int symbol();
#define ROW(name, version, flags, symbol)
#include TABLE_FILE
#undef EXPORT

namespace {

struct Function {
  const char* name;
  void* function;
};
// Filled by the loader.
Function table[] = {
#define EXPORT(symbol) {#symbol, reinterpret_cast<void*>(&symbol)},
#include TABLE_FILE
#undef EXPORT
};

void Print(const char* way, const char* name, void* function) {
  Dl_info info = {};
  if (dladdr(function, &info) == 0) return;
  const char* slash = strrchr(info.dli_fname, '/');
  printf("%s\t%s\t%s:%s\n", way, name, slash != nullptr ? slash + 1 : info.dli_fname,
         info.dli_sname != nullptr ? info.dli_sname : "-");
}

}  // namespace

#ifdef DIRECT_LIBRARY
extern "C" __attribute__((visibility("default"))) int Probe(const char*, bool) {
#else
int main() {
#endif
  for (const Function& row : table) Print("table", row.name, row.function);
  void* volatile function;  // read by the code itself, from where its calls find it
#define EXPORT(symbol)                         \
  function = reinterpret_cast<void*>(&symbol); \
  Print("called", #symbol, function);
#include TABLE_FILE
#undef EXPORT
  return 0;
}
