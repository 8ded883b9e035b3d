// SPDX-License-Identifier: Apache-2.0
// What programs of these tests ask for, every row of cudaTypedefs.h (TABLE_FILE, by make_table.py),
// and how they print an answer, a line each:
//   way  name  version  flags  result  status  object:symbol
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

namespace atp::lookup {

struct Request {
  const char* name;
  int version;
};
inline const Request kTable[] = {
#define EXPORT(symbol)
#define ROW(name, version, flags, symbol) {#name, version},
#include TABLE_FILE
#undef EXPORT
#undef ROW
};

inline void Print(const char* way, const Request& request, int flags, int result, int status,
                  void* function) {
  Dl_info info = {};
  const char* object = "-";
  const char* symbol = "-";
  if (function != nullptr && dladdr(function, &info) != 0) {
    const char* slash = strrchr(info.dli_fname, '/');
    object = slash != nullptr ? slash + 1 : info.dli_fname;
    if (info.dli_sname != nullptr) symbol = info.dli_sname;
  }
  printf("%s\t%s\t%d\t%d\t%d\t%d\t%s:%s\n", way, request.name, request.version, flags, result,
         status, object, symbol);
}

}  // namespace atp::lookup
