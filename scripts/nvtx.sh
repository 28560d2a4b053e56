#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nvtx.sh: build/nvtx/{12,13}/include/nvtx3 with NVTX's headers, of CUDA 12 (NVTX 3.1) and 13 (3.5, with the extensions
# for payloads and counters), and build/nvtx/11/lib/libnvToolsExt.so.1, for tests alone: from NVIDIA's wheels on PyPI.
# Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/nvtx
declare -A wheels=([11]="nvidia-nvtx-cu11==11.8.86" [12]="nvidia-nvtx-cu12==12.9.79" [13]="nvidia-nvtx==13.5.25")

fetch() { # VERSION DIR
	if ! python3 -m pip --version > /dev/null 2>&1; then
		echo "python3-pip is not installed" > "$2/why"
		return 1
	fi
	if ! python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
		-d "$2/wheels" "${wheels[$1]}" 2> "$2/log" < /dev/null; then
		{ grep -m1 ERROR "$2/log" || tail -n1 "$2/log"; } > "$2/why"
		return 1
	fi
	python3 -m zipfile -e "$2"/wheels/*.whl "$2/wheels"
	mv "$2"/wheels/nvidia/*/include "$2"/wheels/nvidia/*/lib "$2"
	rm -r "$2/wheels"
}

status=0
for version in 11 12 13; do
	dir=$root/$version
	[[ ! -e $dir/include/nvtx3/nvToolsExt.h ]] || continue
	rm -rf "$dir" "$dir.tmp"
	mkdir -p "$dir.tmp"
	if fetch "$version" "$dir.tmp"; then
		mv "$dir.tmp" "$dir"
	else
		echo "NVTX of CUDA $version: its headers could not be downloaded ($(cat "$dir.tmp/why"))"
		status=1
	fi
	rm -rf "$dir.tmp"
done
exit $status
