// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>

int main() {
  puts("static");
  return 5;
}
