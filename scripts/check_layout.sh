#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The rules of docs/architecture.md that a machine can check: who may include whom, where cuda.h may be, a licence line on every source,
# no file above 500 lines. Prints each place that breaks one; ends with 1 if there is any.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
cd "$ROOT"
broken=0
MOST_LINES=500

report() {  # report RULE < lines
  local line
  while IFS= read -r line; do
    say "$1: $line"
    broken=1
  done
}

# What a script or compiler of the build has written is included without a folder.
GENERATED='"[a-z_]+(_generated\.h|\.inc)"'
# folder: the folders whose headers it may include. Who is not listed (tests, bench) may include everybody's.
declare -A may_include=(
  [policy]="policy" [protocol]="protocol" [frameworks]="frameworks" [report]="report|policy|protocol" [ptx]="ptx" [sim]="sim|ptx" [examples]="examples"
  [shim]="shim|policy|protocol|ptx|frameworks|report" [daemon]="daemon|policy|protocol|report" [cli]="cli|policy|protocol|frameworks|report"
)
for folder in "${!may_include[@]}"; do
  [ -d "$folder" ] || continue
  report "$folder/ may include only ${may_include[$folder]//|/, }" < <(
    grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$folder" --include='*.h' --include='*.cc' --include='*.cu' --include='*.cuh' |
      grep -vE "include[[:space:]]*(\"(${may_include[$folder]})/|$GENERATED)" || true)
done

report "CUDA headers belong in shim, sim, examples, tests and bench" < <(
  source_files h cc | grep -vE '^(shim|sim|examples|tests|bench)/' | xargs -r grep -nHE '#[[:space:]]*include[[:space:]]*[<"]cuda' || true)
report "policy/ and report/ have no threads and no files" < <(
  grep -rnE '#[[:space:]]*include[[:space:]]*<(thread|mutex|condition_variable|future|fstream|iostream|unistd\.h)>' policy report || true)

while IFS= read -r file; do
  head -3 "$file" | grep 'SPDX-License-Identifier: Apache-2.0' >/dev/null || report "no SPDX line" <<<"$file"
done < <(source_files h cc cu cuh def S sh py cmake map fbs; cd "$ROOT" && find . -path ./build -prune -o -name CMakeLists.txt -print | sed 's|^\./||')

# Under pipefail a reader that leaves early ends the writer by SIGPIPE, now and then, and the pipe fails.
report "write grep PATTERN >/dev/null behind a pipe, not grep -q" < <(
  source_files sh | xargs -r grep -nE '[|] *grep -q' | grep -v '^scripts/check_layout.sh:' || true)

while IFS= read -r file; do
  lines=$(wc -l <"$file")
  [ "$lines" -le "$MOST_LINES" ] || report "longer than $MOST_LINES lines" <<<"$file ($lines)"
done < <(source_files h cc cu cuh S sh py cmake)

[ "$broken" = 0 ] || die "the layout rules are broken (docs/architecture.md)"
