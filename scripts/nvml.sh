#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# nvml.sh: build/nvml/{11,12,13}/include with nvml.h of CUDA 11.8, 12.9 and 13.5, for the double of NVML and the
# comparison of sonde's declarations with it (tests/fakes/nvml/): from NVIDIA's wheels on PyPI. sonde itself is built
# without them. Prints the versions that could not be downloaded, and then exits with 1.
set -euo pipefail
cd "$(dirname "$0")/.."
root=build/nvml
declare -A wheels=([11]="nvidia-nvml-dev-cu11==11.8.86" [12]="nvidia-nvml-dev-cu12==12.9.79" [13]="nvidia-nvml-dev==13.5.37")

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
	mkdir -p "$2/include"
	cp "$2"/wheels/nvidia/*/include/nvml.h "$2/include"
	rm -r "$2/wheels"
}

status=0
for version in 11 12 13; do
	dir=$root/$version
	[[ ! -e $dir/include/nvml.h ]] || continue
	rm -rf "$dir" "$dir.tmp"
	mkdir -p "$dir.tmp"
	if fetch "$version" "$dir.tmp"; then
		mv "$dir.tmp" "$dir"
	else
		echo "NVML of CUDA $version: its header could not be downloaded ($(cat "$dir.tmp/why"))"
		status=1
	fi
	rm -rf "$dir.tmp"
done
exit $status
