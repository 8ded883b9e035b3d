#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test with the Python of the frameworks' virtual environment; exit code 77, which ctest reports as skipped, when there is none.
# Usage: with_frameworks.sh ENVIRONMENT SCRIPT [ARGUMENT...]
set -euo pipefail
if [ ! -f "$1/complete" ]; then
  echo "SKIPPED: no frameworks here; scripts/frameworks.sh installs them from PyPI"
  exit 77
fi
python=$1/bin/python
shift
exec "$python" "$@"
