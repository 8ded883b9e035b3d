#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The stand-in exports the symbols that the toolkit's libcudart.so.13 exports, under the same version
# node: nothing more, and nothing less
# but three names that no public header declares. Only names are read.
# Usage: exports_test.sh STAND_IN TOOLKIT_RUNTIME
set -euo pipefail

names() { nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | LC_ALL=C sort -u; }

left_out=$(printf '%s@@libcudart.so.13\n' __cudaGetProcAddress __cudaRegisterHostVar __cudaRegisterUnifiedTable)
[ "$(names "$2" | wc -l)" -gt 400 ] || { echo "$2 does not look like the CUDA runtime"; exit 1; }
diff --label "the toolkit's" --label "the stand-in's" -u <(names "$2" | grep -vxF "$left_out") <(names "$1")
