#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# families.sh: builds sonde with the families of new_family/ and placed/ from outside the tree, once for all tests
# that need it, and prints the path of the program.
set -euo pipefail
cd "${ROOT:-$(dirname "$0")/../..}"
folder=${B:-build}/tests/families
mkdir -p "$folder"
exec {lock}> "$folder/lock"
flock $lock
cp -rup tests/e2e/new_family/tiny tests/e2e/placed/torture "$folder/"
tests/e2e/build_with.sh "$folder/build" "$folder/tiny/" "$folder/torture/"
echo "$folder/build/test/sonde"
