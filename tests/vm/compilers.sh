#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tests/vm/compilers.sh [CLANG..]: builds the BPF object with each, by default with all installed versions of clang, as
# build/tests/vm/NAME.bpf.o, which step `compilers` of the machines loads.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${B:-build}

if (($#)); then
	list=("$@")
else
	mapfile -t list < <(compgen -c clang- | grep -xE 'clang-[0-9]+' | sort -uV)
fi
mkdir -p "$build/tests/vm"
for clang in "${list[@]}"; do
	name=${clang##*/}
	make -s SONDE_NO_DEPS=1 CLANG="$clang" B="$build/$name" "$build/$name/gen/sonde.bpf.o"
	cp "$build/$name/gen/sonde.bpf.o" "$build/tests/vm/$name.bpf.o"
	echo "$build/tests/vm/$name.bpf.o"
done
