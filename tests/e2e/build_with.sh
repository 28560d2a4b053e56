#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# build_with.sh BUILD FAMILY..: builds sonde with these families from outside the tree in folder BUILD.
set -euo pipefail
cd "${ROOT:-$(dirname "$0")/../..}"
build=$1 from=${B:-build}
shift
with_families() { env -u MAKELEVEL -u MAKEFLAGS make -s B="$build" EXTRA_FAMILIES="${families[*]}" "$@" >&2; }
families=("$@")
with_families "$build/gen/config"
# Families change the BPF object, its skeleton and the files that include it. All other objects are those of the build.
if [[ -d $from/obj && ! $build/obj -nt $build/gen/config ]]; then
	rm -rf "$build/obj" "$build/bpf"
	cp -r "$from/obj" "$from/bpf" "$build/"
	grep -rlE --include='*.d' 'sonde\.skel\.h' "$build/obj" | sed 'p; s/d$/o/' | xargs -r rm
	# the dependency files, from which make knows the headers of each object, have to name the new folder
	find "$build/obj" "$build/bpf" -name '*.d' -exec sed -i "s|^build/|$build/|" {} +
	touch "$build/obj"
fi
with_families all "$build/test/sonde"
