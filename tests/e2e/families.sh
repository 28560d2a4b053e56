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
with_families() { env -u MAKELEVEL -u MAKEFLAGS make -s B="$folder/build" EXTRA_FAMILIES="$folder/tiny/ $folder/torture/" "$@" >&2; }
# Families change the BPF object, its skeleton and the files that include it. All other objects are those of the build.
if [[ ! -d $folder/build/obj && -d ${B:-build}/obj ]]; then
	with_families "$folder/build/gen/config"
	cp -r "${B:-build}/obj" "${B:-build}/bpf" "$folder/build/"
	grep -rlE --include='*.d' 'sonde\.skel\.h' "$folder/build/obj" | sed 'p; s/d$/o/' | xargs -r rm
	# the dependency files, from which make knows the headers of each object, have to name the new folder
	find "$folder/build/obj" "$folder/build/bpf" -name '*.d' -exec sed -i "s|^build/|$folder/build/|" {} +
fi
with_families
echo "$folder/build/sonde"
